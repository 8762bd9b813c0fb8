package output_test

import (
	"path/filepath"
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
