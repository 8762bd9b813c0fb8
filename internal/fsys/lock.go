package fsys

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A LockedError says who holds a lock.
type LockedError struct {
	Path string
	PID  int // 0 if the holder has not said
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return e.Path + " is locked by another process"
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// A Lock is held until Unlock, or until the process ends, whatever ends it. No
// child has it: its descriptor is closed when another program is started.
type Lock struct{ f *os.File }

// errBusy is returned by tryLock for a file that somebody else has locked.
var errBusy = errors.New("locked")

const (
	// lockPause is the time between two attempts.
	lockPause = 5 * time.Millisecond

	// dyingWait is how long a lock may outlive its holder: a child that had been
	// forked, and had not yet begun its program, has it a moment longer.
	dyingWait = 100 * time.Millisecond
)

// Lock locks the file name, which it makes if need be. If another process holds
// the lock for longer than wait, the error is a *LockedError; one that is dead is
// given a tenth of a second to let go. A lock is never taken away because of its
// age.
//
// The lock is on what the name stands for: if somebody removes the file, whoever
// locks next makes sure that it has the one that is there.
func (d *Dir) Lock(name string, wait time.Duration) (*Lock, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, name)
	for began := time.Now(); ; time.Sleep(lockPause) {
		f, err := d.tryLock(path, name)
		if err == nil {
			return &Lock{f}, nil
		}
		if !errors.Is(err, errBusy) {
			return nil, err
		}
		waited, pid := time.Since(began), d.holder(name)
		if waited >= wait && (waited >= dyingWait || isAlive(pid)) {
			return nil, &LockedError{Path: path, PID: pid}
		}
	}
}

// tryLock makes one attempt. A file that was replaced meanwhile is errBusy.
func (d *Dir) tryLock(path, name string) (*os.File, error) {
	f, err := d.handle.open(path, name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f, exclusive); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !d.isStill(path, name, f) {
		return nil, errors.Join(errBusy, f.Close())
	}
	// Who holds it is for people: that it cannot be written is no reason not to lock.
	if err := f.Truncate(0); err == nil {
		f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	}
	return f, nil
}

// isStill reports whether name is the file f.
func (d *Dir) isStill(path, name string, f *os.File) bool {
	again, err := d.handle.open(path, name, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer again.Close()
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := again.Stat()
	return err == nil && os.SameFile(ours, there)
}

// Hold holds the directory itself until it is closed, or until the process ends.
// If another process does for longer than wait, the error is a *LockedError.
func (d *Dir) Hold(wait time.Duration) error {
	for began := time.Now(); ; time.Sleep(lockPause) {
		err := d.handle.lock(exclusive)
		if !errors.Is(err, errBusy) {
			return err
		}
		if time.Since(began) >= wait {
			return &LockedError{Path: d.path}
		}
	}
}

// Held reports whether a process holds the directory. It changes nothing.
func (d *Dir) Held() (bool, error) {
	// The lock goes with the descriptor: one of its own is closed at once.
	again, err := d.handle.reopen()
	if err != nil {
		return false, err
	}
	defer again.close()
	err = again.lock(shared)
	if errors.Is(err, errBusy) {
		return true, nil
	}
	return false, err
}

// How lockFile locks.
const (
	exclusive = false
	shared    = true // with others that lock so
)

// holder returns the process that a lock file names, or 0.
func (d *Dir) holder(name string) int {
	b, err := d.ReadFile(name, 32)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(string(bytes.TrimSpace(b)))
	return pid
}

// Unlock gives the lock up. The file stays: one that is removed could be locked
// by two at once.
func (l *Lock) Unlock() error { return l.f.Close() }
