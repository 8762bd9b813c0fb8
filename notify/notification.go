package notify

import (
	"encoding"
	"fmt"
	"time"
)

// An Owner is an agent; it names the queue in which a notification lands.
type Owner string

// Root is the zero [Owner]: the main agent, to whom everything goes that has
// no other taker.
const Root Owner = ""

// A Source says what a notification is about.
// The zero Source means [BackgroundTask].
type Source string

// The sources that the module itself uses. A host may add its own.
const (
	BackgroundTask Source = "background_task" // a task ended, or stalled
	ScheduledTask  Source = "scheduled_task"  // a schedule fired
	UserAction     Source = "user_action"     // something the user said or did
	Plan           Source = "plan"            // a nudge from the plan
	Monitor        Source = "monitor"         // a line that a monitor was watching for
	Progress       Source = "progress"        // new output of a running task
)

// A Priority says how soon a notification is told.
// The zero Priority of a [Notification] leaves that to its source and status;
// the zero Priority given to a [Queue] means [Next].
type Priority int

const (
	// Next is told before the next call to the model: ends that went wrong,
	// stalls, fires, the user's actions, monitor lines, and every source that
	// this package does not know.
	Next Priority = iota + 1

	// Later is told when the turn is over or the host is idle: completed
	// tasks, nudges, progress.
	Later
)

var (
	_ encoding.TextMarshaler   = Priority(0)
	_ encoding.TextUnmarshaler = (*Priority)(nil)
)

// String returns "next", "later", "default" for zero, or the number.
func (p Priority) String() string {
	switch p {
	case 0:
		return "default"
	case Next:
		return "next"
	case Later:
		return "later"
	}
	return fmt.Sprintf("Priority(%d)", int(p))
}

// MarshalText returns what [Priority.String] does, or an error for a number
// that is no priority.
func (p Priority) MarshalText() ([]byte, error) {
	if p < 0 || p > Later {
		return nil, fmt.Errorf("notify: no such priority: %d", int(p))
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads what [Priority.MarshalText] wrote. After an error p is
// unchanged.
func (p *Priority) UnmarshalText(text []byte) error {
	for _, known := range []Priority{0, Next, Later} {
		if string(text) == known.String() {
			*p = known
			return nil
		}
	}
	return fmt.Errorf("notify: no such priority: %q", text)
}

// A Notification is one thing to tell a model: this ended, this stalled, this
// schedule fired. Every field may be left zero, and then is not mentioned.
type Notification struct {
	// ID tells one notification from another: a queue holds no two of one ID.
	// An empty ID is filled by the queue.
	ID string `json:"id,omitzero"`

	// Source says what the notification is about.
	// If empty, it is BackgroundTask.
	Source Source `json:"source,omitzero"`

	// TaskID names the task that it is about.
	TaskID string `json:"task_id,omitzero"`

	// ToolUseID names the model's call that started the task.
	ToolUseID string `json:"tool_use_id,omitzero"`

	// Status is the status in which a task ended: "completed", "failed" or
	// "killed". It is empty for a task that is still running.
	Status string `json:"status,omitzero"`

	// Summary says in one line what happened.
	Summary string `json:"summary,omitzero"`

	// Result is what came of it, in as many lines as that takes.
	Result string `json:"result,omitzero"`

	// OutputFile is where the whole output can be read.
	OutputFile string `json:"output_file,omitzero"`

	// EntryID names the schedule entry that fired, and Command is what it says.
	EntryID string `json:"entry_id,omitzero"`
	Command string `json:"command,omitzero"`

	// Slot is the time for which a fire was due, Late how much later it came,
	// and Missed the number of slots before it that did not fire.
	Slot   time.Time     `json:"slot,omitzero"`
	Late   time.Duration `json:"late,omitzero"` // nanoseconds in JSON
	Missed int           `json:"missed,omitzero"`

	// Folded is how many earlier notices this one stands for; see FoldAfter.
	Folded int `json:"folded,omitzero"`

	// Priority overrules what Source and Status say.
	// A negative one is Next, one beyond Later is Later.
	Priority Priority `json:"priority,omitzero"`

	// To is the owner whose queue it lands in. A Hub goes by it.
	To Owner `json:"to,omitzero"`

	// Time is when it happened.
	Time time.Time `json:"time,omitzero"`

	// Told, if set, is called when the lease that carried the notification is
	// committed: once, with no lock held. An error means only that the
	// notification may come again after a restart.
	Told func() error `json:"-"`
}

// isEnd reports whether n says that a task has ended.
func (n *Notification) isEnd() bool {
	return n.TaskID != "" && n.Status != "" && (n.Source == "" || n.Source == BackgroundTask)
}

// running reports whether n speaks of a task as one that is running. What a
// user did about a task, or a line that it printed, holds after its end too.
func (n *Notification) running() bool {
	return n.TaskID != "" && n.Status == "" &&
		(n.Source == "" || n.Source == BackgroundTask || n.Source == Progress)
}

// priority returns how soon n is told: the one place that decides it.
func (n *Notification) priority() Priority {
	if n.Priority != 0 {
		return n.Priority
	}
	switch n.Source {
	case "", BackgroundTask:
		if n.Status == "completed" {
			return Later
		}
	case Plan, Progress:
		return Later
	}
	return Next
}
