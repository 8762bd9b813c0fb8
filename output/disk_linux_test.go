package output_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/output"
)

// smallDisk returns a directory on a file system of a mebibyte.
func smallDisk(t *testing.T) *output.Dir {
	t.Helper()
	mount := t.TempDir()
	require.NoError(t, syscall.Mount("afoot", mount, "tmpfs", 0, "size=1m,mode=0700"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, 0)) })
	d, err := output.OpenDir(filepath.Join(mount, "d"))
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// Of a write that the disk took in part, that part is kept.
func TestPartialDiskWrite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := smallDisk(t)
	o := open(t, output.Config{Dir: dir, Name: "x", Through: true})
	write(t, o, strings.Repeat("line\n", 1<<20))
	write(t, o, "more\n")
	st := o.Stat()
	require.Error(t, st.Err)
	require.Positive(t, st.Size)
	require.EqualValues(t, 5<<20+5, st.Size+st.Dropped)
	got := all(t, o)
	require.Len(t, got, int(st.Size))
	require.Equal(t, strings.Repeat("line\n", 1<<20)[:st.Size], got)
	o.End()
	m := marker.FindStringSubmatch(view(t, o, 0, 1000).Text)
	gap, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	lines, err := strconv.Atoi(m[2])
	require.NoError(t, err)
	require.InDelta(t, gap/5, lines, 1, "lines are counted in what is kept")
}

// However many outputs have ended, none of them holds a descriptor, and all can
// be read, also by readers that were at it when the end came.
func TestEndedOutputHoldsNoDescriptor(t *testing.T) {
	dir := openDir(t)
	before := descriptors(t)
	var outputs []*output.TaskOutput
	var readers sync.WaitGroup
	for i := range 50 {
		o := open(t, output.Config{Dir: dir, Name: fmt.Sprint(i), Through: true})
		write(t, o, strings.Repeat("x", 10_000))
		for range 4 {
			readers.Go(func() {
				p := make([]byte, 10_000)
				for range 50 {
					if n, err := o.ReadAt(p, 0); n != len(p) || err != nil {
						t.Errorf("ReadAt = %d, %v", n, err)
					}
				}
			})
		}
		readers.Go(o.End)
		outputs = append(outputs, o)
	}
	readers.Wait()
	require.Equal(t, before, descriptors(t))
	for _, o := range outputs {
		require.Len(t, all(t, o), 10_000)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
