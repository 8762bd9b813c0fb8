package task

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/afoot-go/afoot/internal/fsys"
	"github.com/afoot-go/afoot/internal/text"
)

// Read returns the tasks of a session, oldest first, from its directory (see
// [Registry.Dir]), also while a host has it open. It changes nothing. If no host
// has the session open, tasks that have not ended are shown as the next host will
// find them: failed, because their host was lost.
func Read(dir string) ([]State, error) {
	d, err := fsys.LookDir(dir)
	if err != nil {
		return nil, fmt.Errorf("task: session: %w", err)
	}
	defer d.Close()
	held, err := d.Held()
	if err != nil {
		return nil, fmt.Errorf("task: session: %w", err)
	}
	log, err := d.ReadFile(journalName, journalMax)
	if err != nil {
		return nil, fmt.Errorf("task: session: %w", err)
	}
	h, err := replay(log)
	states := make([]State, len(h.tasks))
	for i, t := range h.tasks {
		st := t.state
		st.Notified = !t.told.IsZero()
		if info, err := os.Lstat(filepath.Join(dir, string(st.ID)+".output")); err == nil {
			st.OutputSize, st.OutputFile = info.Size(), filepath.Join(dir, info.Name())
		}
		if !held && !st.Status.Terminal() {
			st.Status, st.Reason, st.Error = Failed, HostLost, hostLost
		}
		states[i] = st
	}
	if err != nil {
		return states, fmt.Errorf("task: session: %w", err)
	}
	return states, nil
}

const (
	// textLimit is the number of tasks that Text names.
	textLimit = 50

	// textName is the number of characters of a task's name there.
	textName = 200
)

// Text returns what a model needs to know of owner's tasks when its conversation
// has been cut short: a line for each that has not ended, with its id, type,
// status, age, how much it has printed, and what it is. It is empty if there is
// none. Past 50 tasks it says how many more there are.
func (r *Registry) Text(owner Owner) string {
	live := r.handles(func(e *entry) bool { return e.ownerLocked() == owner && !e.base.status().Terminal() })
	var b strings.Builder
	for i, h := range live {
		if i == textLimit {
			fmt.Fprintf(&b, "and %d more\n", len(live)-i)
			break
		}
		st := h.State()
		age := time.Since(st.Created).Round(time.Second)
		fmt.Fprintf(&b, "%s (%s, %s for %v, %d bytes of output): %s\n", st.ID, text.Line(string(st.Type)), st.Status, age,
			st.OutputSize, text.Clip(text.Line(st.Name()), textName))
	}
	return b.String()
}
