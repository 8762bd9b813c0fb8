//go:build unix

package fsys

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks f for as long as it is open.
func lockFile(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := handle{f}.do(func(fd int) error { return unix.Flock(fd, how|unix.LOCK_NB) })
	switch err {
	case nil:
		return nil
	case unix.EWOULDBLOCK, unix.EINTR:
		return errBusy
	}
	return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
}

// isAlive reports whether there is a process of that number.
func isAlive(pid int) bool { return pid > 0 && unix.Kill(pid, 0) != unix.ESRCH }

func (h handle) lock(shared bool) error { return lockFile(h.f, shared) }

// reopen opens the directory once more.
func (h handle) reopen() (handle, error) {
	fd, err := h.openat(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return handle{}, &fs.PathError{Op: "open", Path: h.f.Name(), Err: err}
	}
	return handle{os.NewFile(uintptr(fd), h.f.Name())}, nil
}
