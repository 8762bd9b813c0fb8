package output

import (
	"sync"

	"github.com/afoot-go/afoot/internal/fsys"
)

// A Dir owns the files of outputs that outgrew memory. It is a directory with
// mode 0700 and a random name under os.TempDir, made when the first file is
// needed.
//
// Its methods may be called from any goroutine.
// The zero Dir is ready to use.
type Dir struct {
	mu     sync.Mutex // held while the directory is made or removed
	dir    *fsys.Dir  // nil until the first file
	closed bool
}

// create makes the file name in the directory, and the directory before it.
// It returns the file and its path.
func (d *Dir) create(name string) (*fsys.File, string, error) {
	dir, err := d.open()
	if err != nil {
		return nil, "", err
	}
	f, err := dir.Create(name)
	if err != nil {
		return nil, "", err
	}
	return f, f.Name(), nil
}

func (d *Dir) open() (*fsys.Dir, error) {
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

// Close removes the directory with every file in it. Outputs that have a file
// there can be read on until they are closed themselves; no output gets a new
// one. Closing twice does nothing more.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	if d.dir == nil {
		return nil
	}
	return d.dir.RemoveAll()
}
