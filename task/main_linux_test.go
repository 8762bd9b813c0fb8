package task_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/fsys"
	"github.com/afoot-go/afoot/internal/leak"
	"github.com/afoot-go/afoot/internal/record"
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(conduct); arg != "" {
		fmt.Fprintln(os.Stderr, "host:", actAsHost(arg))
		os.Exit(1)
	}
	if dir := os.Getenv(busyHost); dir != "" {
		fmt.Fprintln(os.Stderr, "host:", actAsBusyHost(dir))
		os.Exit(1)
	}
	leak.Main(m)
}

// failWrites makes writes to a file fail until the returned function is called.
func failWrites(path string, err error) (remove func()) {
	return fsys.Install(&fsys.Seam{Below: path, Before: func(op, _ string) error {
		if op == "write" {
			return err
		}
		return nil
	}})
}

// reframe rewrites each record of a journal.
func reframe(t *testing.T, path string, change func(string) string) {
	t.Helper()
	log, err := os.ReadFile(path)
	require.NoError(t, err)
	records, _, err := record.Split(bytes.TrimRight(log, "\x00"))
	require.NoError(t, err)
	var changed []byte
	for _, r := range records {
		changed = record.Append(changed, []byte(change(string(r))))
	}
	require.NoError(t, os.WriteFile(path, changed, 0o600))
}
