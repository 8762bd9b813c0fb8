package task_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/task"
)

func TestStatus(t *testing.T) {
	for status, want := range map[task.Status]struct {
		name     string
		terminal bool
	}{
		task.Pending:   {"pending", false},
		task.Running:   {"running", false},
		task.Completed: {"completed", true},
		task.Failed:    {"failed", true},
		task.Killed:    {"killed", true},
	} {
		require.Equal(t, want.name, status.String())
		require.Equal(t, want.terminal, status.Terminal())
		b, err := json.Marshal(status)
		require.NoError(t, err)
		require.Equal(t, `"`+want.name+`"`, string(b))
		var back task.Status
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, status, back)
	}
	var zero task.Status
	require.Equal(t, task.Pending, zero)
}

func TestNoSuchStatus(t *testing.T) {
	for _, s := range []task.Status{-1, 5} {
		require.False(t, s.Terminal())
		require.Contains(t, s.String(), "Status(")
		_, err := json.Marshal(s)
		require.Error(t, err)
	}
	s := task.Running
	require.Error(t, json.Unmarshal([]byte(`"frobnicated"`), &s))
	require.Equal(t, task.Running, s, "left alone")
}
