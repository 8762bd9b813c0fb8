package fsys

import (
	"os"
	"strings"
	"sync/atomic"
)

// A Seam sees every call below a directory that changes something on disk: it
// may let one fail, and it may look at the directory after one, as a crash
// there would leave it. Ops are create, open, write, truncate, sync, rename,
// remove, mkdir and rmdir.
type Seam struct {
	// Below is the directory, or a file, an absolute path.
	Below string

	// Before is called before a call; an error is returned in its place.
	Before func(op, path string) error

	// After is called after a call that was made.
	After func(op, path string)
}

// installed is nil but in tests.
var installed atomic.Pointer[Seam]

// Install makes s the seam of this process until the returned function is
// called, which puts back the one there was. It is for tests.
func Install(s *Seam) (remove func()) {
	old := installed.Swap(s)
	return func() { installed.Store(old) }
}

// observe makes a call that changes path, through the seam if there is one.
func observe(op, path string, call func() error) error {
	s := installed.Load()
	if s == nil || !within(path, s.Below) {
		return call()
	}
	if s.Before != nil {
		if err := s.Before(op, path); err != nil {
			return err
		}
	}
	err := call()
	if s.After != nil {
		s.After(op, path)
	}
	return err
}

// within reports whether path is top or below it.
func within(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}
