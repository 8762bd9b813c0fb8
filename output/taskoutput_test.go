package output_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/output"
)

func open(t testing.TB, cfg output.Config) *output.TaskOutput {
	t.Helper()
	o, err := output.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return o
}

func write(t testing.TB, o *output.TaskOutput, s string) {
	t.Helper()
	n, err := o.Write([]byte(s))
	require.NoError(t, err)
	require.Equal(t, len(s), n)
}

// all reads everything, a piece at a time.
func all(t testing.TB, o *output.TaskOutput) string {
	t.Helper()
	var b strings.Builder
	for off := int64(0); ; {
		c, err := o.Since(off, 0)
		require.NoError(t, err)
		if len(c.Bytes) == 0 {
			return b.String()
		}
		b.Write(c.Bytes)
		off = c.Next
	}
}

func TestZeroValue(t *testing.T) {
	var o output.TaskOutput
	require.Equal(t, output.Stat{}, o.Stat())
	write(t, &o, "hello\n")
	require.Equal(t, output.Stat{Size: 6}, o.Stat())
	require.Equal(t, "hello\n", all(t, &o))
	require.NoError(t, o.Close())
}

// The kept bytes are exactly those written, in memory and across every size at
// which they move: chunk, memory limit, block of the line index.
func TestKeptBytesAreExact(t *testing.T) {
	for _, mem := range []int64{1, 100, 64 << 10, 64<<10 + 1, 0} {
		t.Run(fmt.Sprint("MemLimit ", mem), func(t *testing.T) {
			o := open(t, output.Config{MemLimit: mem})
			rnd := rand.New(rand.NewPCG(1, uint64(mem)))
			var want bytes.Buffer
			for want.Len() < 3<<20 {
				p := make([]byte, rnd.IntN(200_000))
				for i := range p {
					p[i] = byte(rnd.IntN(64))
				}
				want.Write(p)
				write(t, o, string(p))
			}
			st := o.Stat()
			require.EqualValues(t, want.Len(), st.Size)
			require.Equal(t, mem != 0, st.Path != "")
			require.True(t, all(t, o) == want.String(), "the bytes differ")
			for range 200 {
				off := rnd.Int64N(st.Size)
				p := make([]byte, rnd.IntN(100_000)+1)
				n, err := o.ReadAt(p, off)
				if err != nil {
					require.Equal(t, io.EOF, err)
				}
				require.True(t, bytes.Equal(p[:n], want.Bytes()[off:off+int64(n)]), "ReadAt(%d bytes, %d)", len(p), off)
				require.Equal(t, err == io.EOF, off+int64(len(p)) > st.Size)
			}
		})
	}
}

func TestNoFileBeforeTheLimit(t *testing.T) {
	o := open(t, output.Config{MemLimit: 10})
	write(t, o, "0123456789")
	require.Empty(t, o.Stat().Path)
	require.Empty(t, temp(t))
	write(t, o, "x")
	path := o.Stat().Path
	require.NotEmpty(t, path)
	onDisk, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "0123456789x", string(onDisk), "everything moved")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	info, err = os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, o.Close())
	require.Empty(t, temp(t), "Close removes what the output made itself")
}

// temp lists what this module has in the temporary directory.
func temp(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "afoot-*"))
	require.NoError(t, err)
	return found
}

func TestDirIsShared(t *testing.T) {
	var dir output.Dir
	one := open(t, output.Config{Dir: &dir, Name: "one", MemLimit: 1})
	two := open(t, output.Config{Dir: &dir, Name: "two", MemLimit: 1})
	write(t, one, "first")
	write(t, two, "second")
	require.Equal(t, filepath.Dir(one.Stat().Path), filepath.Dir(two.Stat().Path))
	require.Equal(t, "one.output", filepath.Base(one.Stat().Path))
	require.Len(t, temp(t), 1)

	require.NoError(t, one.Close())
	require.FileExists(t, one.Stat().Path, "the directory's owner removes it")
	require.NoError(t, dir.Close())
	require.NoError(t, dir.Close(), "twice")
	require.Empty(t, temp(t))
	require.Equal(t, "second", all(t, two), "read through the descriptor")

	late := open(t, output.Config{Dir: &dir, MemLimit: 1})
	write(t, late, "kept?")
	require.ErrorIs(t, late.Stat().Err, output.ErrClosed)
	require.EqualValues(t, 5, late.Stat().Dropped)
}

// A file is never made where something already is.
func TestM03NameIsTaken(t *testing.T) {
	var dir output.Dir
	t.Cleanup(func() { dir.Close() })
	first := open(t, output.Config{Dir: &dir, Name: "first", MemLimit: 1})
	write(t, first, "xx")
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	require.NoError(t, os.Symlink(victim, filepath.Join(filepath.Dir(first.Stat().Path), "planted.output")))
	for _, name := range []string{"planted", "first"} {
		o := open(t, output.Config{Dir: &dir, Name: name, MemLimit: 1})
		write(t, o, "overwritten")
		require.ErrorIs(t, o.Stat().Err, fs.ErrExist, name)
	}
	b, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))
	require.Equal(t, "xx", all(t, first))
}

func TestLimitIsExact(t *testing.T) {
	for _, mem := range []int64{0, 10} {
		var calls atomic.Int32
		o := open(t, output.Config{Limit: 100, MemLimit: mem, OnLimit: func() { calls.Add(1) }})
		write(t, o, strings.Repeat("a", 100))
		require.Zero(t, calls.Load(), "full, and nothing dropped")
		require.False(t, o.Stat().Full)
		write(t, o, "b")
		write(t, o, "c")
		st := o.Stat()
		require.EqualValues(t, 100, st.Size)
		require.EqualValues(t, 2, st.Dropped)
		require.True(t, st.Full)
		require.EqualValues(t, 1, calls.Load(), "called once")
		require.Equal(t, strings.Repeat("a", 100), all(t, o))
		if mem != 0 {
			b, err := os.ReadFile(st.Path)
			require.NoError(t, err)
			require.Len(t, b, 100)
		}
	}
}

// What is kept is a prefix: a write that fits again after one that did not is
// not put behind a gap.
func TestNothingAfterAGap(t *testing.T) {
	o := open(t, output.Config{Limit: 10})
	write(t, o, "12345")
	write(t, o, "678901")
	write(t, o, "2")
	require.Equal(t, "1234567890", all(t, o))
	require.EqualValues(t, 2, o.Stat().Dropped)
}

func TestLimitFromManyGoroutines(t *testing.T) {
	var calls atomic.Int32
	o := open(t, output.Config{Limit: 100_000, OnLimit: func() { calls.Add(1) }})
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			line := []byte(strings.Repeat(string(rune('a'+w)), 99) + "\n")
			for range 200 {
				o.Write(line)
			}
		})
	}
	writers.Wait()
	st := o.Stat()
	require.EqualValues(t, 100_000, st.Size)
	require.EqualValues(t, 60_000, st.Dropped)
	require.EqualValues(t, 1, calls.Load())
	for line := range strings.Lines(all(t, o)) { // each whole, in one place
		require.Equal(t, strings.Repeat(line[:1], 99)+"\n", line)
	}
}

func TestBadConfig(t *testing.T) {
	for _, cfg := range []output.Config{{Limit: -1}, {MemLimit: -1}, {Name: "../x"}, {Name: "a/b"}, {Name: ".."}} {
		_, err := output.New(cfg)
		require.Error(t, err)
	}
}

func TestEndAndClose(t *testing.T) {
	o := open(t, output.Config{})
	write(t, o, "kept")
	o.End()
	o.End()
	_, err := o.Write([]byte("late"))
	require.ErrorIs(t, err, output.ErrEnded)
	require.True(t, o.Stat().Ended)
	require.Equal(t, "kept", all(t, o), "readable after the end")
	require.NoError(t, o.Close())
	require.NoError(t, o.Close())
	_, err = o.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, output.ErrClosed)
	_, err = o.View(0, 0)
	require.ErrorIs(t, err, output.ErrClosed)
}

func TestReadFrom(t *testing.T) {
	o := open(t, output.Config{Limit: 1000})
	n, err := o.ReadFrom(io.LimitReader(zeros{}, 1<<20))
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, n, "reads on when full")
	require.EqualValues(t, 1<<20-1000, o.Stat().Dropped)

	n, err = o.ReadFrom(io.MultiReader(strings.NewReader("abc"), failing{}))
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.EqualValues(t, 3, n)

	o.End()
	_, err = o.ReadFrom(strings.NewReader("late"))
	require.ErrorIs(t, err, output.ErrEnded)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

// What a pipe carries arrives byte for byte, in memory and on disk.
func TestPipe(t *testing.T) {
	for _, mem := range []int64{0, 1 << 16} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		sum := sha256.New()
		var writer sync.WaitGroup
		writer.Go(func() {
			defer w.Close()
			rnd := rand.NewChaCha8([32]byte{1})
			io.CopyN(io.MultiWriter(w, sum), rnd, 4<<20)
		})
		o := open(t, output.Config{MemLimit: mem})
		n, err := o.ReadFrom(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		writer.Wait()
		require.EqualValues(t, 4<<20, n)
		got := sha256.New()
		o.End()
		_, err = io.Copy(got, o.Follow(t.Context(), 0))
		require.NoError(t, err)
		require.Equal(t, sum.Sum(nil), got.Sum(nil))
	}
}
