package task

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/afoot-go/afoot/internal/text"
	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/output"
)

// A State is what is known about a run at one moment. It is a plain value:
// changing it changes nothing else.
type State struct {
	ID          ID     `json:"id"`
	Run         int    `json:"run"` // which life of the task this is, from 1
	Type        Type   `json:"type"`
	Status      Status `json:"status"`
	Description string `json:"description"`
	Command     string `json:"command,omitzero"` // as it was given, if the task runs one
	ToolUseID   string `json:"tool_use_id,omitzero"`
	Owner       Owner  `json:"owner,omitzero"` // empty: the root

	Created time.Time `json:"created"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`

	// Reason says why the run ended; while it runs, why it is being killed.
	Reason   EndReason `json:"reason,omitzero"`
	KilledBy Owner     `json:"killed_by,omitzero"` // who asked; empty: the root, or nobody
	Exit     *Exit     `json:"exit,omitzero"`      // how its process ended, if it had one
	Error    string    `json:"error,omitzero"`     // what went wrong, in words
	Summary  string    `json:"summary,omitzero"`   // the end in one line
	Result   string    `json:"result,omitzero"`    // what it handed back, clipped to ResultLimit characters

	Stalled         bool  `json:"stalled,omitzero"`           // it seems to wait for an answer
	WaitingForInput bool  `json:"waiting_for_input,omitzero"` // it is known to
	Backgrounded    bool  `json:"backgrounded,omitzero"`      // it began in the foreground
	Descendants     []int `json:"descendants,omitzero"`       // pids of its processes that outlived its end

	OutputSize    int64  `json:"output_size"`             // bytes kept
	OutputDropped int64  `json:"output_dropped,omitzero"` // bytes not kept
	OutputError   string `json:"output_error,omitzero"`   // why the disk took no more
	OutputFile    string `json:"output_file,omitzero"`    // set while the output has a file
	OutputTold    int64  `json:"output_told,omitzero"`    // the model has been shown the bytes up to here

	Priority notify.Priority `json:"priority,omitzero"` // of the end; zero: the queue\'s rule
	Notified bool            `json:"notified"`          // the latch: somebody has announced the end, or is about to
	Data     json.RawMessage `json:"data,omitzero"`     // the kind's own
}

// An Exit is how a process ended.
type Exit struct {
	Code    int    `json:"code"`             // -1 if there is none
	Signal  string `json:"signal,omitzero"`  // such as "SIGKILL"
	Unknown bool   `json:"unknown,omitzero"` // somebody else in the host waited for it first
}

// nameLimit is the number of characters of a name.
const nameLimit = 120

// Name returns what summaries call the task: its command, if it runs one that is
// short enough to be recognised, otherwise its description. It has at most 120
// characters.
func (s State) Name() string {
	if s.Command != "" && len(s.Command) <= nameLimit && !strings.Contains(s.Command, "\n") {
		return s.Command
	}
	return text.Clip(s.Description, nameLimit)
}

// clone returns s without memory shared with s.
func (s State) clone() State {
	s.Data = slices.Clone(s.Data)
	s.Descendants = slices.Clone(s.Descendants)
	if s.Exit != nil {
		exit := *s.Exit
		s.Exit = &exit
	}
	return s
}

// A StateBase holds the state of one run and its latch. (Public descriptions of
// such systems call it TaskStateBase.) A task type of a host's own may embed
// it; [Handle.Start] fills it in. It is used by pointer and never copied.
//
// Its methods may be called from any goroutine.
// The zero StateBase is that of a run nobody has registered yet.
type StateBase struct {
	notified atomic.Bool

	mu    sync.Mutex // guards the fields below; Registry.mu is taken before it
	state State
	out   *output.TaskOutput // nil until the run is registered
	rev   uint64             // counts changes
}

// State returns the state at this moment.
func (b *StateBase) State() State {
	b.mu.Lock()
	s, out := b.state.clone(), b.out
	b.mu.Unlock()

	s.Notified = b.notified.Load()
	if out != nil {
		st := out.Stat()
		s.OutputSize, s.OutputDropped, s.OutputFile = st.Size, st.Dropped, st.Path
		if st.Err != nil {
			s.OutputError = st.Err.Error()
		}
	}
	return s
}

// ClaimNotification records that the end of the run has been announced. It
// reports whether this call did the recording, so of any number of racing
// callers exactly one gets true and announces the end. The registry pushes no
// notification for a run that somebody else has claimed.
func (b *StateBase) ClaimNotification() bool {
	return b.notified.CompareAndSwap(false, true)
}

// base is how Handle.Start finds the StateBase that a task type embeds.
func (b *StateBase) base() *StateBase { return b }

// status returns the status alone.
func (b *StateBase) status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Status
}

// standing returns the status and why the run is being killed.
func (b *StateBase) standing() (Status, EndReason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Status, b.state.Reason
}

// change lets f change the state.
func (b *StateBase) change(f func(*State)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.state)
	b.rev++
}

// image returns the state and how often it has been changed.
func (b *StateBase) image() (State, uint64) {
	b.mu.Lock()
	rev := b.rev
	b.mu.Unlock()
	return b.State(), rev // a change in between only makes the state newer than it says
}

// changeAt is change, unless the state is no longer at rev.
func (b *StateBase) changeAt(rev uint64, f func(*State)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rev != rev {
		return false
	}
	f(&b.state)
	b.rev++
	return true
}

// takeOver makes b the state of the run that old was for. It reports whether it
// could: a StateBase serves one run.
func (b *StateBase) takeOver(old *StateBase) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.ID != "" {
		return false
	}
	b.state, b.out, b.rev = old.state, old.out, old.rev
	b.notified.Store(old.notified.Load())
	return true
}
