//go:build !linux

package output_test

import (
	"testing"

	"github.com/afoot-go/afoot/output"
)

func smallDisk(t *testing.T) *output.Dir {
	t.Skip("needs Linux, to mount a small file system")
	return nil
}
