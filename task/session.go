package task

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/afoot-go/afoot/internal/fsys"
	"github.com/afoot-go/afoot/output"
)

// ErrSessionHeld is returned by Open for a named session that another host has
// open. The error says which process that is.
var ErrSessionHeld = errors.New("task: session is open elsewhere")

const (
	lockName = "lock"

	// lockWait is how long Open waits for a session that is held: a sweep, or who
	// reads it, may have it for a moment.
	lockWait = 100 * time.Millisecond

	namedPrefix     = "s-"
	anonymousPrefix = "a-"
)

// A session is a directory with the records and outputs of one registry's tasks,
// held by its lock.
type session struct {
	dir     *fsys.Dir
	lock    *fsys.Lock
	journal *journal
	outputs *output.Dir
}

// sessionDir returns the name of the directory of a session: one that people
// recognise, and no two sessions share.
func sessionDir(name string) string {
	if name == "" {
		return anonymousPrefix + strings.ToLower(rand.Text())
	}
	sum := sha256.Sum256([]byte(name))
	return namedPrefix + slug(name) + hex.EncodeToString(sum[:8])
}

// slug returns what of a name is safe in a file name, with a dash behind it.
func slug(name string) string {
	const most = 40
	s := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			return c
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		}
		return '-'
	}, name)
	s = strings.Trim(s, "-")
	if s = strings.Trim(s[max(0, len(s)-most):], "-"); s == "" {
		return ""
	}
	return s + "-"
}

// openSession opens a session's directory, or makes it, and takes its lock. It
// returns the tasks that the journal knows.
func openSession(base *fsys.Dir, name string, wait time.Duration) (*session, []*saved, error) {
	for range 10 { // a sweep may remove the directory before it is locked
		s, err := lockSession(base, name, wait)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		tasks, err := s.open()
		if err != nil {
			return nil, nil, errors.Join(err, s.close())
		}
		return s, tasks, nil
	}
	return nil, nil, fmt.Errorf("task: %s is removed again and again", filepath.Join(base.Path(), name))
}

func lockSession(base *fsys.Dir, name string, wait time.Duration) (*session, error) {
	dir, err := base.Sub(name)
	if err != nil {
		return nil, err
	}
	lock, err := dir.Lock(lockName, wait)
	if err == nil {
		// The lock file may be removed by who cleans up. The directory cannot be
		// without the session going with it.
		if err = dir.Hold(lockWait); err != nil {
			err = errors.Join(err, lock.Unlock())
		}
	}
	var held *fsys.LockedError
	if (err == nil || errors.As(err, &held)) && !dir.IsThere() {
		if err == nil {
			lock.Unlock()
		}
		err = fs.ErrNotExist // swept meanwhile: what is held is not what has the name
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &session{dir: dir, lock: lock}, nil
}

func (s *session) open() (tasks []*saved, err error) {
	if err := s.dir.RemoveTemps(); err != nil { // a dead host's: the lock is ours
		return nil, err
	}
	var h history
	if s.journal, h, err = openJournal(s.dir); err != nil {
		return nil, err
	}
	s.outputs, err = output.OpenDir(s.dir.Path())
	return h.tasks, err
}

// close gives the session up. Its files stay.
func (s *session) close() error {
	var err error
	if s.outputs != nil {
		err = s.outputs.Close()
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.close())
	}
	return errors.Join(err, s.lock.Unlock(), s.dir.Close())
}

// openBase opens the directory that sessions are made in.
func openBase(path string) (*fsys.Dir, error) {
	base, err := fsys.OpenDir(path)
	if err != nil {
		return nil, fmt.Errorf("task: directory: %w", err)
	}
	return base, nil
}

// Sweep removes the sessions below base, a Config.Dir, that nobody has open and
// that have not been written to for ttl, with their records and outputs. It
// returns how many it removed. Age alone never removes a session: one that is
// open, in this process or another, stays however old it is.
func Sweep(base string, ttl time.Duration) (removed int, err error) {
	if _, err := os.Lstat(base); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	dir, err := openBase(base)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return 0, err
	}
	errs := []error{dir.FinishRemovals()}
	for _, name := range names {
		gone, err := sweep(dir, name, ttl)
		if gone {
			removed++
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// sweep removes a session if nobody has it open and it is old enough.
func sweep(base *fsys.Dir, name string, ttl time.Duration) (removed bool, err error) {
	if !strings.HasPrefix(name, namedPrefix) && !strings.HasPrefix(name, anonymousPrefix) {
		return false, nil // not one of ours
	}
	if age, err := sessionAge(filepath.Join(base.Path(), name)); err != nil || age < ttl {
		return false, err
	}
	s, err := lockSession(base, name, 0)
	var held *fsys.LockedError
	switch {
	case errors.As(err, &held), errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	// Whoever waits for the lock finds that the name stands for nothing then.
	return true, errors.Join(base.RemoveSub(name), s.close())
}

// sessionAge returns how long ago a session's journal, or else its directory,
// was written to.
func sessionAge(path string) (time.Duration, error) {
	info, err := os.Lstat(filepath.Join(path, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Lstat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // somebody else swept it
	}
	if err != nil {
		return 0, err
	}
	return time.Since(info.ModTime()), nil
}
