package fsys

import "golang.org/x/sys/unix"

// Reserve has the file system set n bytes from offset off aside for f, whose
// size stays as it is, so that they can be written when the disk is full.
func (f *File) Reserve(off, n int64) error {
	return handle{f.File}.do(func(fd int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
}
