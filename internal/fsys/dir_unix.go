//go:build unix

package fsys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A handle is an open directory.
type handle struct{ f *os.File }

// do calls f with the descriptor, which stays open meanwhile.
func (h handle) do(f func(fd int) error) error {
	c, err := h.f.SyscallConn()
	if err != nil {
		return err
	}
	if c.Control(func(fd uintptr) { err = f(int(fd)) }) != nil {
		return fs.ErrClosed
	}
	return err
}

// openPath opens or makes the directory at path, whose parent is there.
func openPath(path string, checked bool) (handle, error) {
	// The way to the parent is the caller's: links on it are followed.
	parent, err := os.OpenFile(filepath.Dir(path), searchOnly|unix.O_DIRECTORY, 0)
	if err != nil {
		return handle{}, err
	}
	defer parent.Close()
	if checked {
		if err := checkParent(parent); err != nil {
			return handle{}, err
		}
	}
	return handle{parent}.sub(path, filepath.Base(path))
}

// checkParent returns an error if somebody else could put another directory in
// the place of one in it.
func checkParent(dir *os.File) error {
	st, err := stat(dir)
	if err != nil {
		return err
	}
	switch uid := int(st.Uid); {
	case uid != os.Geteuid() && uid != 0:
		return unsafe(dir.Name(), "it belongs to uid %d", uid)
	case st.Mode&0o022 != 0 && st.Mode&syscall.S_ISVTX == 0:
		return unsafe(dir.Name(), "others can write to it (mode %#o)", st.Mode&0o7777)
	}
	return nil
}

// lookPath opens the directory at path as it is.
func lookPath(path string) (handle, error) {
	parent, err := os.OpenFile(filepath.Dir(path), searchOnly|unix.O_DIRECTORY, 0)
	if err != nil {
		return handle{}, err
	}
	defer parent.Close()
	dir, err := handle{parent}.openDir(path, filepath.Base(path))
	if err != nil {
		return handle{}, err
	}
	st, err := stat(dir)
	if err == nil && int(st.Uid) != os.Geteuid() {
		err = unsafe(path, "it belongs to uid %d, and we are uid %d", st.Uid, os.Geteuid())
	}
	if err != nil {
		return handle{}, errors.Join(err, dir.Close())
	}
	return handle{dir}, nil
}

// sub opens or makes the directory name in h.
func (h handle) sub(path, name string) (handle, error) {
	err := h.do(func(fd int) error { return unix.Mkdirat(fd, name, 0o700) })
	if err != nil && err != unix.EEXIST {
		return handle{}, &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	dir, err := h.openDir(path, name)
	if err != nil {
		return handle{}, err
	}
	if err := makePrivate(dir); err != nil {
		return handle{}, errors.Join(err, dir.Close())
	}
	return handle{dir}, nil
}

// openDir opens the directory name in h.
func (h handle) openDir(path, name string) (*os.File, error) {
	fd, err := h.openat(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	switch {
	case err == unix.ELOOP || err == unix.ENOTDIR || err == unix.EMLINK:
		return nil, unsafe(path, "it is a link or no directory")
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// makePrivate makes sure that nobody but us gets into a directory.
func makePrivate(dir *os.File) error {
	st, err := stat(dir)
	if err != nil {
		return err
	}
	if uid := int(st.Uid); uid != os.Geteuid() {
		return unsafe(dir.Name(), "it belongs to uid %d, and we are uid %d", uid, os.Geteuid())
	}
	if st.Mode&0o7777 == 0o700 {
		return nil
	}
	return dir.Chmod(0o700) // through the handle: its path may lead elsewhere by now
}

// open opens or makes the file name.
func (h handle) open(path, name string, flag int) (*os.File, error) {
	fd, err := h.openat(name, flag, 0o600)
	switch {
	case err == unix.ELOOP || err == unix.EMLINK || err == unix.ENXIO:
		return nil, unsafe(path, "it is no plain file")
	case err == unix.EISDIR:
		return nil, unsafe(path, "it is a directory")
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if err := checkFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// checkFile returns an error for what is not a plain file of ours with one name.
func checkFile(f *os.File) error {
	st, err := stat(f)
	if err != nil {
		return err
	}
	switch {
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return unsafe(f.Name(), "it is no plain file")
	case int(st.Uid) != os.Geteuid():
		return unsafe(f.Name(), "it belongs to uid %d, and we are uid %d", st.Uid, os.Geteuid())
	case st.Nlink > 1:
		return unsafe(f.Name(), "it has %d names", st.Nlink)
	}
	return nil
}

// lookUp returns nil if there is an entry of that name, and otherwise an error
// that matches fs.ErrNotExist; errRemoved if the directory itself is there no more.
func (h handle) lookUp(name string) error {
	return h.do(func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if st.Nlink == 0 {
			return errRemoved
		}
		return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// openat opens an entry without following a link or waiting for a FIFO.
func (h handle) openat(name string, flag int, mode uint32) (opened int, err error) {
	err = h.do(func(fd int) (err error) {
		for {
			opened, err = unix.Openat(fd, name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, mode)
			if err != unix.EINTR {
				return err
			}
		}
	})
	return opened, err
}

func stat(f *os.File) (*syscall.Stat_t, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return info.Sys().(*syscall.Stat_t), nil
}

func (h handle) rename(from, to string) error {
	return h.do(func(fd int) error { return unix.Renameat(fd, from, fd, to) })
}

func (h handle) remove(name string) error {
	return h.do(func(fd int) error { return unix.Unlinkat(fd, name, 0) })
}

func (h handle) removeDir(name string) error {
	return h.do(func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) })
}

func (h handle) sync() error { return h.f.Sync() }

func (h handle) close() error { return h.f.Close() }

func (h handle) names() ([]string, error) {
	// A directory handle has one read position; reading through a second one
	// leaves concurrent calls alone.
	again, err := h.reopen()
	if err != nil {
		return nil, err
	}
	defer again.close()
	return again.f.Readdirnames(-1)
}

// isAt reports whether path is the directory itself.
func (h handle) isAt(path string) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	here, err := h.f.Stat()
	return err == nil && os.SameFile(here, there)
}
