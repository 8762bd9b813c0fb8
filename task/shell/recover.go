package shell

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/afoot-go/afoot/internal/proc"
	"github.com/afoot-go/afoot/task"
)

// Recover ends what is left of a command whose host has died: it was the host
// that read its output and knew its end. The process is known by more than its
// pid, and so are those that carry the task's mark in their environment; no other
// process is signalled. The error matches task.ErrGone.
func (s *Shell) Recover(_ context.Context, h *task.Handle) (task.Task, error) {
	var d Data
	// Without data the host died between the record of the task and the start of
	// its process, or just after that: only the mark tells.
	json.Unmarshal(h.State().Data, &d)
	found := mark(h)
	if len(s.lost()[found]) == 0 {
		found = "" // nobody carries it: no need to look again for each task
	}
	if left := proc.EndLost(d.identity(), found, s.grace()); len(left) > 0 {
		return nil, fmt.Errorf("%w, but for %w", task.ErrGone, &SurvivorError{ID: h.ID(), PIDs: left})
	}
	return nil, task.ErrGone
}
