// Package fsys is the one place that makes, opens and removes files.
//
// A directory is reached through a handle that is opened once, so what others
// do to its path later changes nothing here; a file is made with O_EXCL, so a
// file or a link that somebody planted is never opened in its place.
package fsys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A Dir is a directory of our own, mode 0700, reached through a handle.
// Its methods may be called from any goroutine.
type Dir struct {
	path string
	root *os.Root
}

// MakeTemp makes a directory with a name nobody can guess under os.TempDir.
// [Dir.Remove] takes it away again.
func MakeTemp() (*Dir, error) {
	path, err := os.MkdirTemp("", "afoot-")
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the private directory: %w", err), os.Remove(path))
	}
	return &Dir{path: path, root: root}, nil
}

// Path returns the directory's absolute path.
func (d *Dir) Path() string { return d.path }

// Create makes the file name, mode 0600, and opens it for reading and writing.
// It returns an error that matches fs.ErrExist if anything has that name, a
// link included.
func (d *Dir) Create(name string) (*os.File, error) {
	return d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// Remove removes the directory and all that is in it and closes the handle.
func (d *Dir) Remove() error {
	return errors.Join(d.root.Close(), os.RemoveAll(d.path))
}
