package output

import (
	"errors"
	"sync"

	"github.com/afoot-go/afoot/internal/fsys"
)

// A file is an output's file. While the output grows it has one descriptor and
// is never opened by name again; once the output has ended it is opened for
// each read, so that a host may keep more outputs than it may have descriptors.
type file struct {
	dir  *Dir
	name string
	path string

	mu    sync.Mutex // guards the fields below
	f     *fsys.File // nil when there is none to share
	using int        // reads that have f
	ended bool       // f is closed as soon as nobody uses it
}

// append writes p at off, the end of the file, and returns how much of it is
// there. It is for the one writer there is, before end.
func (x *file) append(p []byte, off int64) (n int, err error) {
	if n, err = x.f.WriteAt(p, off); err == nil {
		return n, nil
	}
	// Of a write that the disk took in part, os.File does not say how much.
	if info, serr := x.f.Stat(); serr == nil {
		n = int(max(0, min(info.Size()-off, int64(len(p)))))
	}
	return n, err
}

func (x *file) readAt(p []byte, off int64) (int, error) {
	f, release, err := x.acquire()
	if err != nil {
		return 0, err
	}
	defer release()
	return f.ReadAt(p, off)
}

// acquire returns the file to read from, and what gives it back.
func (x *file) acquire() (f *fsys.File, release func() error, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.f == nil {
		if f, err = x.dir.open(x.name); err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	}
	x.using++
	return x.f, x.release, nil
}

func (x *file) release() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.using--
	return x.closeLocked()
}

// end gives up the descriptor.
func (x *file) end() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	return x.closeLocked()
}

func (x *file) closeLocked() error {
	if !x.ended || x.using > 0 || x.f == nil {
		return nil
	}
	f := x.f
	x.f = nil
	return f.Close()
}

// discard removes a file that could not be filled.
func (x *file) discard() error { return errors.Join(x.end(), x.dir.remove(x.name)) }
