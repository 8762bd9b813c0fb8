//go:build !unix

package shell_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
	"github.com/afoot-go/afoot/task/tasktest"
)

// Where processes cannot be controlled a start says so, and nothing is half done.
func TestUnsupported(t *testing.T) {
	sh := shell.New(shell.Config{})
	tasks, inbox := tasktest.Open(t, sh)
	_, err := sh.Start(t.Context(), tasks, shell.Command{Script: "echo x"})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.True(t, inbox.Lease(0).Empty())
	require.Equal(t, task.Failed, tasks.List(t.Context())[0].Status)
}
