package fsys_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/fsys"
)

func open(t *testing.T) *fsys.Dir {
	t.Helper()
	d, err := fsys.MakeTemp()
	require.NoError(t, err)
	t.Cleanup(func() { d.RemoveAll() })
	return d
}

func TestM05TempDirIsHonoured(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	d := open(t)
	require.Equal(t, tmp, filepath.Dir(d.Path()))
	t.Setenv("TMPDIR", filepath.Join(tmp, "missing"))
	_, err := fsys.MakeTemp()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, filepath.Join(tmp, "missing"), "the error names the path")
}

func TestModes(t *testing.T) {
	d := open(t)
	f, err := d.Create("x")
	require.NoError(t, err)
	defer f.Close()
	for path, want := range map[string]fs.FileMode{d.Path(): 0o700, f.Name(): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
}

func TestCreateNeverOpensWhatIsThere(t *testing.T) {
	d := open(t)
	outside := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(outside, []byte("precious"), 0o600))
	for name, plant := range map[string]func(path string) error{
		"file":     func(p string) error { return os.WriteFile(p, []byte("old"), 0o600) },
		"link":     func(p string) error { return os.Symlink(outside, p) },
		"dangling": func(p string) error { return os.Symlink(outside+".new", p) },
		"dir":      func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		require.NoError(t, plant(filepath.Join(d.Path(), name)))
		_, err := d.Create(name)
		require.ErrorIs(t, err, fs.ErrExist, name)
	}
	require.NoFileExists(t, outside+".new")
	require.NoError(t, os.Remove(filepath.Join(d.Path(), "dir")), "RemoveAll removes files alone")
	for _, name := range []string{"../out", "/etc/out", "", ".", "..", "a/../../out"} {
		_, err := d.Create(name)
		require.Error(t, err, "%q", name)
	}
}

// The handle is what counts: a directory put in the place of ours gets nothing.
func TestMovedDirectory(t *testing.T) {
	d := open(t)
	aside := d.Path() + ".aside"
	require.NoError(t, os.Rename(d.Path(), aside))
	defer os.RemoveAll(aside)
	require.NoError(t, os.Mkdir(d.Path(), 0o700))
	f, err := d.Create("x")
	require.NoError(t, err)
	defer f.Close()
	require.FileExists(t, filepath.Join(aside, "x"))
	require.NoFileExists(t, filepath.Join(d.Path(), "x"))
	require.NoError(t, d.RemoveAll())
	require.NoFileExists(t, filepath.Join(aside, "x"), "what was ours is gone")
	require.NoError(t, os.Remove(d.Path()), "what is not ours stays")
}

func TestRemove(t *testing.T) {
	d := open(t)
	f, err := d.Create("x")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, d.RemoveAll())
	require.NoDirExists(t, d.Path())
	_, err = d.Create("y")
	require.ErrorIs(t, err, fs.ErrClosed)
}
