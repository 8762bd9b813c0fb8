package fsys_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/fsys"
)

// nobody is a uid that is not ours.
const nobody = 65534

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files to another uid")
	}
}

func openDir(t *testing.T, path string) *fsys.Dir {
	t.Helper()
	d, err := fsys.OpenDir(path)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

func TestM02ModesWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o777, 0o22} {
		base := filepath.Join(t.TempDir(), "base")
		old := syscall.Umask(umask)
		d, err := fsys.OpenDir(base)
		var sub *fsys.Dir
		var f *fsys.File
		if err == nil {
			sub, err = d.Sub("sub")
		}
		if err == nil {
			f, err = sub.Create("x")
		}
		syscall.Umask(old)
		require.NoError(t, err, "umask %#o", umask)
		defer d.Close()
		defer sub.Close()
		defer f.Close()
		require.EqualValues(t, 0o700, mode(t, base))
		require.EqualValues(t, 0o700, mode(t, sub.Path()))
		require.Zero(t, mode(t, filepath.Join(sub.Path(), "x"))&^0o600)
	}
}

func TestMissingParentsAreMade(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "a", "b", "c"))
	require.EqualValues(t, 0o700, mode(t, filepath.Dir(d.Path())))
	again := openDir(t, d.Path())
	require.Equal(t, d.Path(), again.Path())
}

func TestBad59LooseModeIsTightened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.Mkdir(path, 0o777))
	require.NoError(t, os.Chmod(path, 0o777))
	openDir(t, path)
	require.EqualValues(t, 0o700, mode(t, path))
}

func TestBad55DirectoryThatIsNone(t *testing.T) {
	base := t.TempDir()
	real := filepath.Join(base, "real")
	require.NoError(t, os.Mkdir(real, 0o700))
	require.NoError(t, os.Symlink(real, filepath.Join(base, "link")))
	require.NoError(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(base, "nowhere"), filepath.Join(base, "dangling")))
	for _, name := range []string{"link", "file", "dangling"} {
		_, err := fsys.OpenDir(filepath.Join(base, name))
		require.ErrorIs(t, err, fsys.ErrUnsafe, name)
		require.ErrorContains(t, err, filepath.Join(base, name))
		d := openDir(t, base)
		_, err = d.Sub(name)
		require.ErrorIs(t, err, fsys.ErrUnsafe, name)
	}
	require.NoDirExists(t, filepath.Join(base, "nowhere"))
	// A link on the way is the caller's own affair.
	openDir(t, filepath.Join(base, "link", "below"))
	require.DirExists(t, filepath.Join(real, "below"))
}

func TestM01Bad57AnotherUsersDirectory(t *testing.T) {
	needsRoot(t)
	for _, perm := range []fs.FileMode{0o700, 0o755, 0o777} {
		path := filepath.Join(t.TempDir(), "theirs")
		require.NoError(t, os.Mkdir(path, perm))
		require.NoError(t, os.Chmod(path, perm))
		require.NoError(t, os.Chown(path, nobody, nobody))
		_, err := fsys.OpenDir(path)
		require.ErrorIs(t, err, fsys.ErrUnsafe)
		require.ErrorContains(t, err, path+" is not safe to use: it belongs to uid 65534")
		require.Equal(t, perm, mode(t, path), "not touched")
	}
	// M07: nor is one of root's used by another user; run there as a child.
	path := t.TempDir()
	require.NoError(t, os.Chmod(path, 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o711))
	out := asNobody(t, "open", path)
	require.Contains(t, out, "permission denied")
	require.Contains(t, out, path)
}

func TestBad58AnotherUsersLink(t *testing.T) {
	needsRoot(t)
	base := t.TempDir()
	victim := filepath.Join(base, "victim")
	require.NoError(t, os.Mkdir(victim, 0o700))
	link := filepath.Join(base, "link")
	require.NoError(t, os.Symlink(victim, link))
	require.NoError(t, os.Lchown(link, nobody, nobody))
	_, err := fsys.OpenDir(link)
	require.ErrorIs(t, err, fsys.ErrUnsafe)
}

func TestParentThatOthersRule(t *testing.T) {
	base := filepath.Join(t.TempDir(), "shared")
	require.NoError(t, os.Mkdir(base, 0o700))
	require.NoError(t, os.Chmod(base, 0o777))
	_, err := fsys.OpenDir(filepath.Join(base, "mine"))
	require.ErrorIs(t, err, fsys.ErrUnsafe)
	require.ErrorContains(t, err, "others can write to it")
	require.NoDirExists(t, filepath.Join(base, "mine"))
	require.NoError(t, os.Chmod(base, 0o777|fs.ModeSticky))
	openDir(t, filepath.Join(base, "mine"))

	needsRoot(t)
	require.NoError(t, os.Chmod(base, 0o755))
	require.NoError(t, os.Chown(base, nobody, nobody))
	_, err = fsys.OpenDir(filepath.Join(base, "other"))
	require.ErrorIs(t, err, fsys.ErrUnsafe)
	require.ErrorContains(t, err, "belongs to uid 65534")
}

// A temporary directory that anybody may write to, and that is not even sticky, is
// common in containers: a private directory is made there all the same.
func TestMakeTempAnywhere(t *testing.T) {
	tmp := t.TempDir()
	require.NoError(t, os.Chmod(tmp, 0o777))
	t.Setenv("TMPDIR", tmp)
	d, err := fsys.MakeTemp()
	require.NoError(t, err)
	require.EqualValues(t, 0o700, mode(t, d.Path()))
	require.NoError(t, d.RemoveAll())
	entries, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// What is not a plain file of ours with one name is not opened, and not waited for.
func TestBad49To54UnsafeFiles(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	outside := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(outside, []byte("precious"), 0o600))
	at := func(name string) string { return filepath.Join(d.Path(), name) }
	require.NoError(t, os.WriteFile(at("good"), []byte("good"), 0o600))

	socket, err := net.Listen("unix", at("socket"))
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, syscall.Mkfifo(at("fifo"), 0o600))
	require.NoError(t, os.Mkdir(at("dir"), 0o700))
	defer os.Remove(at("dir"))
	require.NoError(t, os.Symlink(outside, at("link")))
	require.NoError(t, os.Symlink("good", at("inner link")))
	require.NoError(t, os.Link(outside, at("hard link")))
	unsafe := []string{"socket", "fifo", "dir", "link", "inner link", "hard link"}
	if os.Geteuid() == 0 {
		require.NoError(t, os.WriteFile(at("theirs"), nil, 0o666))
		require.NoError(t, os.Chown(at("theirs"), nobody, nobody))
		require.NoError(t, syscall.Mknod(at("device"), syscall.S_IFCHR|0o600, 1<<8|5))
		unsafe = append(unsafe, "theirs", "device")
	}
	for _, name := range unsafe {
		_, err := d.ReadFile(name, 100)
		require.ErrorIs(t, err, fsys.ErrUnsafe, name)
		require.ErrorContains(t, err, at(name))
		_, err = d.Open(name)
		require.ErrorIs(t, err, fsys.ErrUnsafe, name)
		_, err = d.Lock(name, 0)
		require.ErrorIs(t, err, fsys.ErrUnsafe, name)
		_, err = d.Create(name)
		require.ErrorIs(t, err, fs.ErrExist, name)
	}
	b, err := d.ReadFile("good", 100)
	require.NoError(t, err, "the others are served")
	require.Equal(t, "good", string(b))
	b, err = os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))
}

func TestBad45LargeFileIsNotRead(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	f, err := d.Create("sparse")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(1<<40))
	_, err = d.ReadFile("sparse", 1<<20)
	require.ErrorIs(t, err, fsys.ErrTooLarge)
	_, err = d.ReadFile("none", 1<<20)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestBadNames(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	for _, name := range []string{"", ".", "..", "/etc/passwd", "../x", "a/b", "a\x00", `a\b`} {
		for op, call := range map[string]func() error{
			"Create":    func() error { _, err := d.Create(name); return err },
			"Open":      func() error { _, err := d.Open(name); return err },
			"ReadFile":  func() error { _, err := d.ReadFile(name, 1); return err },
			"WriteFile": func() error { return d.WriteFile(name, nil) },
			"Remove":    func() error { return d.Remove(name) },
			"Sub":       func() error { _, err := d.Sub(name); return err },
			"Lock":      func() error { _, err := d.Lock(name, 0); return err },
		} {
			require.ErrorIs(t, call(), fs.ErrInvalid, "%s(%q)", op, name)
		}
	}
	names, err := d.Names()
	require.NoError(t, err)
	require.Empty(t, names)
}

func TestWriteFile(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	require.NoError(t, d.WriteFile("x", []byte("old")))
	require.NoError(t, d.WriteFile("x", []byte("new")))
	b, err := d.ReadFile("x", 10)
	require.NoError(t, err)
	require.Equal(t, "new", string(b))
	names, err := d.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, names, "nothing else is left")
}

// Many may write one file at once; it is always one of theirs, whole.
func TestWriteFileFromMany(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 20 {
				if err := d.WriteFile("x", []byte(strings.Repeat(fmt.Sprint(i), 10_000))); err != nil {
					t.Errorf("WriteFile: %v", err)
				}
			}
		})
	}
	writers.Wait()
	b, err := d.ReadFile("x", 1<<20)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat(string(b[:1]), 10_000), string(b))
	names, err := d.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, names)
}

// Wherever a write fails, the old content stays and nothing else is left.
func TestWriteFileFails(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	require.NoError(t, d.WriteFile("x", []byte("old")))
	full := errors.New("disk full")
	for _, op := range []string{"create", "write", "sync", "rename"} {
		remove := fsys.Install(&fsys.Seam{Below: d.Path(), Before: func(got, path string) error {
			if got == op {
				return full
			}
			return nil
		}})
		err := d.WriteFile("x", []byte("new"))
		remove()
		require.ErrorIs(t, err, full, op)
		b, err := d.ReadFile("x", 10)
		require.NoError(t, err)
		require.Equal(t, "old", string(b), op)
		names, err := d.Names()
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, names, op)
	}
}

// A file that is exchanged for a link and back all the time is never written
// through.
func TestBad61ExchangedForALink(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	at := func(name string) string { return filepath.Join(d.Path(), name) }
	require.NoError(t, os.WriteFile(at("x"), nil, 0o600))
	require.NoError(t, os.Symlink(victim, at("y")))
	var stop atomic.Bool
	var exchange sync.WaitGroup
	exchange.Go(func() {
		for !stop.Load() {
			os.Rename(at("x"), at("z"))
			os.Rename(at("y"), at("x"))
			os.Rename(at("x"), at("y"))
			os.Rename(at("z"), at("x"))
		}
	})
	opened := 0
	for range 20_000 {
		f, err := d.Open("x")
		if err != nil {
			continue
		}
		opened++
		f.WriteAt([]byte("through"), 0)
		f.Close()
	}
	stop.Store(true)
	exchange.Wait()
	b, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))
	t.Logf("opened %d of 20000 times", opened)
}

func TestLock(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	first, err := d.Lock("lock", 0)
	require.NoError(t, err)
	_, err = d.Lock("lock", 20*time.Millisecond)
	var locked *fsys.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, os.Getpid(), locked.PID)
	require.ErrorContains(t, err, fmt.Sprintf("locked by process %d", os.Getpid()))
	other, err := d.Lock("other", 0)
	require.NoError(t, err)
	require.NoError(t, other.Unlock())
	require.NoError(t, first.Unlock())
	second, err := d.Lock("lock", 0)
	require.NoError(t, err)
	require.NoError(t, second.Unlock())
}

// Bad input 63: the file of a lock that is held is removed. Whoever comes then
// locks the new file, and never both think they have the same name.
func TestBad63LockFileRemoved(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	var inside atomic.Int32
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 200 {
				l, err := d.Lock("lock", 10*time.Second)
				if err != nil {
					t.Errorf("Lock: %v", err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				inside.Add(-1)
				d.Remove("lock") // while it is held, then given up at once
				l.Unlock()
			}
		})
	}
	workers.Wait()
}

// A directory is held as such: no file of it can be removed to get in.
func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d, again := openDir(t, path), openDir(t, path)
	held, err := again.Held()
	require.NoError(t, err)
	require.False(t, held)
	require.NoError(t, d.Hold(0))
	held, err = again.Held()
	require.NoError(t, err)
	require.True(t, held)
	var locked *fsys.LockedError
	require.ErrorAs(t, again.Hold(10*time.Millisecond), &locked)
	require.NoError(t, d.Close())
	require.NoError(t, again.Hold(0))
}

// Looking at a directory leaves it as it is.
func TestLookDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	_, err := fsys.LookDir(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoDirExists(t, path)
	require.NoError(t, os.Mkdir(path, 0o755))
	d, err := fsys.LookDir(path)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.EqualValues(t, 0o755, mode(t, path))
	require.NoError(t, os.Symlink(path, path+".link"))
	_, err = fsys.LookDir(path + ".link")
	require.ErrorIs(t, err, fsys.ErrUnsafe)
}

// A lock of a process that is dead may be held a moment longer by a child that it
// had forked: that is waited for, and no longer.
func TestLockOutlivesItsHolder(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	first, err := d.Lock("lock", 0)
	require.NoError(t, err)
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	require.NoError(t, os.WriteFile(filepath.Join(d.Path(), "lock"), []byte(fmt.Sprint(dead.Process.Pid)), 0o600))
	_, err = d.Lock("lock", 0)
	var locked *fsys.LockedError
	require.ErrorAs(t, err, &locked, "held by somebody else than it says, for good")
	var late sync.WaitGroup
	late.Go(func() {
		second, err := d.Lock("lock", 0)
		if err != nil {
			t.Errorf("Lock: %v", err)
			return
		}
		second.Unlock()
	})
	require.NoError(t, first.Unlock())
	late.Wait()
}

// A lock ends with its holder, and a child does not keep it.
func TestLockOfADeadHolder(t *testing.T) {
	d := openDir(t, filepath.Join(t.TempDir(), "d"))
	cmd, ready := asChild(t, "lock", d.Path())
	_, err := d.Lock("lock", 0)
	var locked *fsys.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, cmd.Process.Pid, locked.PID)
	child := strings.TrimSpace(ready)
	require.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	l, err := d.Lock("lock", 0)
	require.NoError(t, err, "the holder's child %s, which lives on, does not hold it", child)
	require.NoError(t, l.Unlock())
	var pid int
	fmt.Sscan(child, &pid)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// conduct makes the test binary, run again, do one thing and no tests.
const conduct = "AFOOT_FSYS_CONDUCT"

func asChild(t *testing.T, name, dir string) (cmd *exec.Cmd, firstLine string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), conduct+"="+name, "DIR="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	buf := make([]byte, 100)
	n, err := out.Read(buf)
	require.NoError(t, err)
	return cmd, string(buf[:n])
}

func asNobody(t *testing.T, name, dir string) string {
	t.Helper()
	// The test binary lies where nobody may look: it is copied.
	bin, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	copied, err := os.CreateTemp("", "")
	require.NoError(t, err)
	defer os.Remove(copied.Name())
	_, err = copied.Write(bin)
	require.NoError(t, errors.Join(err, copied.Chmod(0o755), copied.Close()))
	for dir := filepath.Dir(copied.Name()); len(dir) > 1 && mode(t, dir)&0o001 == 0; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o711))
	}
	cmd := exec.Command(copied.Name())
	cmd.Dir = "/"
	cmd.Env = []string{conduct + "=" + name, "DIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// act is what a child does.
func act(name, dir string) {
	switch name {
	case "open":
		_, err := fsys.OpenDir(dir)
		fmt.Println(err)
	case "lock":
		d, err := fsys.OpenDir(dir)
		if err == nil {
			_, err = d.Lock("lock", 0)
		}
		child := exec.Command("sleep", "300")
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(child.Process.Pid)
		select {}
	}
}
