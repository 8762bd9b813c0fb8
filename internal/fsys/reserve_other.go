//go:build !linux

package fsys

import "errors"

// Reserve returns errors.ErrUnsupported.
func (f *File) Reserve(off, n int64) error { return errors.ErrUnsupported }
