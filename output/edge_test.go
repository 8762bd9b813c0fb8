package output_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/fsys"
	"github.com/afoot-go/afoot/output"
)

// After the disk has refused something nothing is kept, not even what would fit
// into memory: it would stand at a wrong offset.
func TestNothingAfterADiskError(t *testing.T) {
	dir := openDir(t)
	taken := open(t, output.Config{Dir: dir, Name: "x", Through: true})
	write(t, taken, "taken")
	o := open(t, output.Config{Dir: dir, Name: "x", MemLimit: 10, OnLimit: func() { t.Error("OnLimit is for the limit") }})
	write(t, o, "kept")
	write(t, o, strings.Repeat("y", 20))
	write(t, o, "z")
	st := o.Stat()
	require.ErrorIs(t, st.Err, fs.ErrExist)
	require.EqualValues(t, 4, st.Size)
	require.EqualValues(t, 21, st.Dropped)
	require.False(t, st.Full)
	require.Equal(t, "kept", all(t, o))
}

func TestOnLimitHoldsNoLock(t *testing.T) {
	var o *output.TaskOutput
	o = open(t, output.Config{Limit: 1, OnLimit: func() {
		o.Write([]byte("again"))
		o.End()
	}})
	write(t, o, "too much")
	require.True(t, o.Stat().Ended)
}

// What a reader gives together with its error counts.
func TestReadFromTakesDataWithAnError(t *testing.T) {
	o := open(t, output.Config{})
	n, err := o.ReadFrom(iotest.DataErrReader(strings.NewReader("abc")))
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	require.Equal(t, "abc", all(t, o))
}

func TestTailOfMuch(t *testing.T) {
	o := open(t, output.Config{})
	write(t, o, strings.Repeat("x", 2<<20)+strings.Repeat("y", output.MaxSince))
	c, err := o.Tail(2 << 20)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("y", output.MaxSince), string(c.Bytes))
	require.Equal(t, o.Stat().Size, c.Next)
}

// A view from the middle is cut like one from the beginning, and its offsets are
// those of the output.
func TestClippedViewFromAnOffset(t *testing.T) {
	raw := strings.Repeat("x", 5000) + "\nheadline\n" + strings.Repeat("middle é\n", 2000) + "last line\n"
	for _, from := range []int64{1, 5001, 6000} {
		o := open(t, output.Config{})
		write(t, o, raw)
		o.End()
		v := view(t, o, from, 100)
		m := marker.FindStringSubmatch(v.Text)
		at := marker.FindStringIndex(v.Text)
		gap, _ := strconv.Atoi(m[1])
		offset, _ := strconv.Atoi(m[3])
		require.Equal(t, raw[from:offset], v.Text[:at[0]])
		require.Equal(t, raw[offset+gap:], v.Text[at[1]:])
		require.EqualValues(t, len(raw), v.Next)
		if from == 5001 {
			require.True(t, strings.HasPrefix(v.Text, "headline\nmiddle"))
			require.True(t, strings.HasSuffix(v.Text[:at[0]], "\n"), "cut at a line")
		}
	}
}

// A path is foreign text too.
func TestMarkerIsSafe(t *testing.T) {
	base := filepath.Join(t.TempDir(), "a\nb")
	dir, err := output.OpenDir(base)
	require.NoError(t, err)
	defer dir.Close()
	o := open(t, output.Config{Dir: dir, Name: "x", Through: true})
	write(t, o, strings.Repeat("x", 1000))
	require.Contains(t, view(t, o, 0, 10).Text, `/a\nb/x.output …]`)
}

// A reader that follows sees the end whenever it comes.
func TestFollowRacesTheEnd(t *testing.T) {
	for range 500 {
		o := open(t, output.Config{})
		var writer sync.WaitGroup
		writer.Go(func() {
			o.Write([]byte("x"))
			o.End()
		})
		got, err := io.ReadAll(o.Follow(t.Context(), 0))
		require.NoError(t, err)
		require.Equal(t, "x", string(got))
		writer.Wait()
	}
}

func TestReadsAfterClose(t *testing.T) {
	for _, mem := range []int64{0, 1} {
		o := open(t, output.Config{MemLimit: mem})
		write(t, o, "text")
		require.NoError(t, o.Close())
		for name, read := range map[string]func() error{
			"ReadAt": func() error { _, err := o.ReadAt(make([]byte, 1), 0); return err },
			"Since":  func() error { _, err := o.Since(4, 0); return err },
			"Tail":   func() error { _, err := o.Tail(0); return err },
			"View":   func() error { _, err := o.View(4, 0); return err },
			"Follow": func() error { _, err := io.ReadAll(o.Follow(t.Context(), 0)); return err },
		} {
			require.ErrorIs(t, read(), output.ErrClosed, name)
		}
		_, err := o.Write(nil)
		require.ErrorIs(t, err, output.ErrEnded)
	}
}

func TestDiscard(t *testing.T) {
	dir := openDir(t)
	o := open(t, output.Config{Dir: dir, Name: "x", Through: true})
	write(t, o, "unwanted")
	require.NoError(t, o.Discard())
	require.NoFileExists(t, o.Stat().Path)
	require.NoError(t, open(t, output.Config{}).Discard(), "without a file")
}

// A spill that fails half-way leaves no file behind.
func TestFailedSpillLeavesNothing(t *testing.T) {
	dir := openDir(t)
	o := open(t, output.Config{Dir: dir, Name: "x", MemLimit: 10})
	write(t, o, "0123456789")
	remove := fsys.Install(&fsys.Seam{Below: os.TempDir(), Before: func(op, path string) error {
		if op == "write" {
			return fs.ErrInvalid
		}
		return nil
	}})
	write(t, o, "x")
	remove()
	require.ErrorIs(t, o.Stat().Err, fs.ErrInvalid)
	require.Equal(t, "0123456789", all(t, o), "what was in memory is still there")
	_, err := output.Reopen(dir, "x")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
