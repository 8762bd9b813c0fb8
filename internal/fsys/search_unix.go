//go:build unix && !linux

package fsys

import "os"

// searchOnly opens a directory that we may list.
const searchOnly = os.O_RDONLY
