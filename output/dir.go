package output

import (
	"path/filepath"
	"sync"

	"github.com/afoot-go/afoot/internal/fsys"
)

// A Dir owns the files of outputs. The zero Dir is ready to use: it is a
// directory with mode 0700 and a random name under os.TempDir, made when the
// first file is needed, and its Close removes it. [OpenDir] gives one that lasts.
//
// Its methods may be called from any goroutine.
type Dir struct {
	mu     sync.Mutex // held while the directory is made or removed
	dir    *fsys.Dir  // nil until the first file
	lasts  bool       // Close leaves the files
	closed bool
}

// OpenDir returns the directory at path, which it makes, mode 0700, if nothing
// is there. One that belongs to somebody else, or a link, is refused. Its Close
// leaves the files.
func OpenDir(path string) (*Dir, error) {
	dir, err := fsys.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return &Dir{dir: dir, lasts: true}, nil
}

// handle returns the directory, and makes it if need be.
func (d *Dir) handle() (*fsys.Dir, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if d.dir != nil {
		return d.dir, nil
	}
	dir, err := fsys.MakeTemp()
	d.dir = dir
	return dir, err
}

// create makes the file name.
func (d *Dir) create(name string) (*file, error) {
	dir, err := d.handle()
	if err != nil {
		return nil, err
	}
	f, err := dir.Create(name)
	if err != nil {
		return nil, err
	}
	return &file{dir: d, name: name, path: filepath.Join(dir.Path(), name), f: f}, nil
}

// free returns an error that matches fs.ErrExist if something has that name.
func (d *Dir) free(name string) error {
	dir, err := d.handle()
	if err != nil {
		return err
	}
	return dir.Free(name)
}

// open opens the file name for reading.
func (d *Dir) open(name string) (*fsys.File, error) {
	dir, err := d.handle()
	if err != nil {
		return nil, err
	}
	return dir.Open(name)
}

func (d *Dir) remove(name string) error {
	dir, err := d.handle()
	if err != nil {
		return err
	}
	return dir.Remove(name)
}

// Close gives up the directory and, unless it is one that lasts, removes it with
// every file in it. Outputs that have not ended can be read on until they are
// closed themselves; no output gets a new file. Closing twice does nothing more.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	switch {
	case d.dir == nil:
		return nil
	case d.lasts:
		return d.dir.Close()
	}
	return d.dir.RemoveAll()
}
