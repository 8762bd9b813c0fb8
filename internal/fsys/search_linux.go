package fsys

import "golang.org/x/sys/unix"

// searchOnly opens a directory that we may pass but not list, as many are that
// hold a private one of ours.
const searchOnly = unix.O_PATH
