// Package fsys is the one place that makes, opens and removes files.
//
// A directory is reached through a handle that is opened once, so what others
// do to its path later changes nothing here. Nothing is opened through a link,
// and nothing that is not a plain file of ours; a new file is made with O_EXCL,
// so one that somebody planted is never opened in its place.
package fsys

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrUnsafe is matched by the error for a directory or file that is not used
	// because of what it is or whom it belongs to. It has not been touched.
	ErrUnsafe = errors.New("not safe to use")

	// ErrTooLarge is matched by the error for a file larger than the caller reads.
	ErrTooLarge = errors.New("file too large")
)

// unsafe returns an error that matches ErrUnsafe.
func unsafe(path, format string, args ...any) error {
	return fmt.Errorf("%s is %w: %s", path, ErrUnsafe, fmt.Sprintf(format, args...))
}

// A Dir is a directory of our own, mode 0700, reached through a handle.
// Its methods may be called from any goroutine.
type Dir struct {
	path   string
	handle handle
}

// MakeTemp makes a directory with a name nobody can guess under os.TempDir, which
// may be one that anybody can write to. [Dir.RemoveAll] takes it away again.
func MakeTemp() (*Dir, error) {
	path, err := os.MkdirTemp("", "afoot-")
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	// Somebody who can put another directory in its place gains nothing: one that
	// is not ours is refused, and what we do in ours goes through the handle.
	h, err := openPath(path, anyParent)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a private directory: %w", err), os.Remove(path))
	}
	return &Dir{path: path, handle: h}, nil
}

// Whether openPath looks at who can write to the parent.
const (
	anyParent  = false
	saneParent = true
)

// OpenDir opens the directory at path, and makes it if nothing is there, with
// the directories above it that are missing, all of them mode 0700. One that is
// there is used only if it belongs to us; a mode that lets others in is
// tightened. A link in the last place of path is not followed.
//
// The directory above may be writable by others only if it is sticky, as /tmp is.
func OpenDir(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	h, err := openPath(path, saneParent)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, handle: h}, nil
}

// LookDir opens the directory at path to read in it: it is not made, and its mode
// stays as it is.
func LookDir(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	h, err := lookPath(path)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, handle: h}, nil
}

// Sub opens the directory name in d, and makes it if nothing is there.
func (d *Dir) Sub(name string) (*Dir, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, name)
	var h handle
	err := observe("mkdir", path, func() (err error) {
		h, err = d.handle.sub(path, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, handle: h}, nil
}

// CheckName returns an error that matches fs.ErrInvalid for what cannot be the
// name of a file in a directory.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("bad file name %.64q: %w", name, fs.ErrInvalid)
	}
	return nil
}

// Path returns the directory's absolute path.
func (d *Dir) Path() string { return d.path }

// Create makes the file name, mode 0600, and opens it for reading and writing.
// It returns an error that matches fs.ErrExist if anything has that name, a
// link included.
func (d *Dir) Create(name string) (*File, error) {
	return d.file("create", name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// errRemoved says that a directory is there no more.
var errRemoved = fmt.Errorf("the directory has been removed: %w", fs.ErrNotExist)

// Free returns an error that matches fs.ErrExist if anything has that name, a link
// included, and one that matches fs.ErrNotExist if the directory has been removed.
func (d *Dir) Free(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	path := filepath.Join(d.path, name)
	switch err := d.handle.lookUp(name); {
	case err == nil:
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	case err != errRemoved && errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return &fs.PathError{Op: "create", Path: path, Err: err}
	}
}

// Open opens the file name for reading and writing. What is not a plain file of
// ours with one name is unsafe, and never waited for.
func (d *Dir) Open(name string) (*File, error) { return d.file("open", name, os.O_RDWR) }

func (d *Dir) file(op, name string, flag int) (*File, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, name)
	var f *os.File
	err := observe(op, path, func() (err error) {
		f, err = d.handle.open(path, name, flag)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
}

// ReadFile returns what the file name holds. One of more than limit bytes is
// ErrTooLarge and not read.
func (d *Dir) ReadFile(name string, limit int64) ([]byte, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, name)
	f, err := d.handle.open(path, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes, and %d are read at most", path, ErrTooLarge, info.Size(), limit)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// tempSuffix ends the names of files that are being written; they begin with a dot.
const tempSuffix = ".tmp"

// RemoveTemps removes what a WriteFile that was interrupted has left. Nobody else
// may be writing files in the directory.
func (d *Dir) RemoveTemps() error {
	names, err := d.Names()
	for _, name := range names {
		if strings.HasPrefix(name, ".") && strings.HasSuffix(name, tempSuffix) {
			err = errors.Join(err, d.Remove(name))
		}
	}
	return err
}

// WriteFile makes name a file with that content, or replaces the one it is, so
// that whoever opens it finds the old content or the new, also after power was
// lost.
func (d *Dir) WriteFile(name string, content []byte) error {
	temp := "." + name + "." + rand.Text() + tempSuffix
	f, err := d.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	return d.Sync()
}

func (d *Dir) rename(from, to string) error {
	if err := CheckName(to); err != nil {
		return err
	}
	return observe("rename", filepath.Join(d.path, to), func() error { return d.handle.rename(from, to) })
}

// Sync makes what was made, renamed and removed in the directory last.
func (d *Dir) Sync() error { return observe("sync", d.path, d.handle.sync) }

// Remove removes the file name. A link is removed itself.
func (d *Dir) Remove(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return observe("remove", filepath.Join(d.path, name), func() error { return d.handle.remove(name) })
}

// IsThere reports whether the directory's path still leads to it.
func (d *Dir) IsThere() bool { return d.handle.isAt(d.path) }

// Names returns the names of all entries, in no order.
func (d *Dir) Names() ([]string, error) { return d.handle.names() }

// RemoveAll removes the files in the directory and then the directory, and
// closes it. If its path leads elsewhere by now, what is there stays.
func (d *Dir) RemoveAll() error {
	err := d.removeFiles()
	if d.IsThere() {
		err = errors.Join(err, observe("rmdir", d.path, func() error { return os.Remove(d.path) }))
	}
	return errors.Join(err, d.Close())
}

// removedPrefix begins the names of directories that are being removed.
const removedPrefix = ".removed-"

// RemoveSub removes the directory name in d, with the files in it. It is taken
// away whole first, under another name: whoever opens name from then on makes a
// new directory, and never gets into one that is half removed.
func (d *Dir) RemoveSub(name string) error {
	aside := removedPrefix + rand.Text()
	if err := d.rename(name, aside); err != nil {
		return err
	}
	return d.finishRemoval(aside)
}

// FinishRemovals removes what a RemoveSub that was interrupted has left.
func (d *Dir) FinishRemovals() error {
	names, err := d.Names()
	for _, name := range names {
		if strings.HasPrefix(name, removedPrefix) {
			err = errors.Join(err, d.finishRemoval(name))
		}
	}
	return err
}

func (d *Dir) finishRemoval(name string) error {
	sub, err := d.Sub(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	for range 10 { // who opened the directory before may still make a lock file in it
		if err = sub.removeFiles(); err != nil {
			return err
		}
		err = observe("rmdir", sub.path, func() error { return d.handle.removeDir(name) })
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist): // another process was faster
			return nil
		case !errors.Is(err, fs.ErrExist): // not empty
			return err
		}
	}
	return err
}

// removeFiles removes the files in the directory.
func (d *Dir) removeFiles() error {
	names, err := d.Names()
	for _, name := range names {
		if rerr := d.Remove(name); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// Close closes the handle. Files that are open stay open.
func (d *Dir) Close() error { return d.handle.close() }

// A File is a plain file of ours.
type File struct {
	*os.File
	path string
}

// Write appends at the file's offset, as [os.File.Write] does.
func (f *File) Write(p []byte) (n int, err error) {
	err = observe("write", f.path, func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

// WriteAt writes at an offset, as [os.File.WriteAt] does.
func (f *File) WriteAt(p []byte, off int64) (n int, err error) {
	err = observe("write", f.path, func() (err error) {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

// Truncate changes the file's size.
func (f *File) Truncate(size int64) error {
	return observe("truncate", f.path, func() error { return f.File.Truncate(size) })
}

// Sync makes what was written last.
func (f *File) Sync() error { return observe("sync", f.path, f.File.Sync) }
