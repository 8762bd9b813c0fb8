package tasktest

import (
	"testing"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
)

// Open returns a registry and the queue that it notifies, with the given kinds.
// When the test is over the registry is closed, and the test fails if a task
// was still running or had left processes, or if the end of one had been neither
// told nor taken.
func Open(t testing.TB, kinds ...task.Kind) (*task.Registry, *notify.Queue) {
	t.Helper()
	inbox := new(notify.Queue)
	tasks, err := task.Open(t.Context(), task.Config{Notify: inbox, Kinds: kinds})
	if err != nil {
		t.Fatalf("tasktest: %v", err)
	}
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Errorf("tasktest: tasks left at the end of the test: %v", err)
		}
	})
	return tasks, inbox
}
