package task

import "fmt"

// A Status is how far a run has got. It moves from Pending to Running to one of
// the three terminal ones, skips Running if the work never began, and never
// moves back.
type Status int

const (
	Pending   Status = iota // registered, not started; the zero Status
	Running                 // at work
	Completed               // exit code 0 or a nil error, nothing else
	Failed                  // exit code not 0, an error, a panic, a signal nobody here sent
	Killed                  // ended by us: see EndReason
)

var statusNames = [...]string{"pending", "running", "completed", "failed", "killed"}

// String returns the status in lower case, such as "running".
func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return fmt.Sprintf("Status(%d)", int(s))
	}
	return statusNames[s]
}

// Terminal reports whether s is Completed, Failed or Killed.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Killed }

// MarshalText returns what String does.
func (s Status) MarshalText() ([]byte, error) {
	if s < 0 || int(s) >= len(statusNames) {
		return nil, fmt.Errorf("task: no such status: %d", int(s))
	}
	return []byte(statusNames[s]), nil
}

// UnmarshalText sets s to the status named text. Any other text is an error and
// leaves s alone.
func (s *Status) UnmarshalText(text []byte) error {
	for i, name := range statusNames {
		if name == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("task: no such status: %.64q", text)
}

// An EndReason says why a run ended as it did. Kinds may add their own.
type EndReason string

// Reasons of runs that ended by themselves.
const (
	Exited     EndReason = "exited"      // the process exited, the function returned
	Signaled   EndReason = "signaled"    // a signal that nobody here sent
	NotStarted EndReason = "not started" // refused at start
	Panicked   EndReason = "panicked"    // the function panicked
	HostLost   EndReason = "host lost"   // the host died before the task ended
)

// Reasons of runs that were killed.
const (
	Requested   EndReason = "requested"    // somebody called Kill
	OwnerGone   EndReason = "owner gone"   // KillOwned
	HostClosed  EndReason = "host closed"  // Close
	TimeLimit   EndReason = "time limit"   // it ran longer than it may
	OutputLimit EndReason = "output limit" // it printed more than it may
)
