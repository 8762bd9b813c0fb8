package output_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/output"
)

func openDir(t *testing.T) *output.Dir {
	t.Helper()
	d, err := output.OpenDir(filepath.Join(t.TempDir(), "outputs"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestWriteThrough(t *testing.T) {
	dir := openDir(t)
	o := open(t, output.Config{Dir: dir, Name: "b7x0k2m9q", Through: true})
	require.Empty(t, o.Stat().Path, "nothing printed, no file")
	for _, s := range []string{"one\n", "two\n"} {
		write(t, o, s)
		path := o.Stat().Path
		require.Equal(t, "b7x0k2m9q.output", filepath.Base(path))
		onDisk, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, all(t, o), string(onDisk), "others see it while it grows")
	}
	_, err := output.New(output.Config{Dir: dir, Name: "b7x0k2m9q", Through: true})
	require.ErrorIs(t, err, fs.ErrExist, "B16: old bytes are never shown under a new name")
}

func TestReopen(t *testing.T) {
	dir := openDir(t)
	text := strings.Repeat("line é\n", 500_000)
	o := open(t, output.Config{Dir: dir, Name: "x", Through: true})
	write(t, o, text)
	require.NoError(t, o.Close())

	again, err := output.Reopen(dir, "x")
	require.NoError(t, err)
	require.Equal(t, output.Stat{Size: int64(len(text)), Path: o.Stat().Path, Ended: true}, again.Stat())
	require.True(t, all(t, again) == text)
	got, err := io.ReadAll(again.Follow(t.Context(), int64(len(text)-5)))
	require.NoError(t, err)
	require.Equal(t, text[len(text)-5:], string(got))
	m := marker.FindStringSubmatch(view(t, again, 0, 700).Text)
	require.Equal(t, "499900", m[2], "lines left out")
	_, err = again.Write([]byte("late"))
	require.ErrorIs(t, err, output.ErrEnded)
	require.NoError(t, again.Close())
	require.FileExists(t, o.Stat().Path)

	_, err = output.Reopen(dir, "none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestOpenDirRefuses(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.Symlink(base, filepath.Join(base, "link")))
	_, err := output.OpenDir(filepath.Join(base, "link"))
	require.Error(t, err)
}
