package task

import (
	"crypto/rand"
	"errors"
	"fmt"
)

// A Type names a kind of background work. The set is open: a host may use its
// own strings.
type Type string

// The types that harnesses know.
const (
	LocalBash         Type = "local_bash"          // a shell command
	LocalAgent        Type = "local_agent"         // a sub-agent in this process
	RemoteAgent       Type = "remote_agent"        // a session elsewhere
	InProcessTeammate Type = "in_process_teammate" // a named agent of a team
	LocalWorkflow     Type = "local_workflow"      // steps with dependencies
	MonitorMCP        Type = "monitor_mcp"         // lines that become notifications
	Dream             Type = "dream"               // consolidation of memory
)

// Prefix returns the letter that ids of the type begin with: b, a, r, t, w, m
// or d, and x for any other type.
func (t Type) Prefix() byte {
	switch t {
	case LocalBash:
		return 'b'
	case LocalAgent:
		return 'a'
	case RemoteAgent:
		return 'r'
	case InProcessTeammate:
		return 't'
	case LocalWorkflow:
		return 'w'
	case MonitorMCP:
		return 'm'
	case Dream:
		return 'd'
	}
	return 'x'
}

// An ID names a task: the prefix of its type and eight characters of 0-9a-z,
// such as "b7x0k2m9q". It is safe as a file name on every system.
type ID string

const (
	alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
	idLen    = 9

	// fair is the largest multiple of len(alphabet) that fits a byte. Bytes from
	// there on would make the first characters likelier than the rest.
	fair = 256 / len(alphabet) * len(alphabet)
)

// ErrBadID is returned for a string that is not a task id.
var ErrBadID = errors.New("task: bad id")

// NewID returns an id for a task of type t. Its eight characters come from
// crypto/rand alone, each of the 36⁸ equally likely. It may be called from any
// goroutine.
func NewID(t Type) ID {
	id := make([]byte, 1, idLen)
	id[0] = t.Prefix()
	var random [16]byte
	for {
		rand.Read(random[:])
		for _, b := range random {
			if int(b) >= fair {
				continue
			}
			if id = append(id, alphabet[int(b)%len(alphabet)]); len(id) == idLen {
				return ID(id)
			}
		}
	}
}

// ParseID returns s as an ID. If it is anything but nine characters as NewID
// makes them, the error matches ErrBadID.
func ParseID(s string) (ID, error) {
	if len(s) != idLen || !letter(s[0]) {
		return "", fmt.Errorf("%w %.64q", ErrBadID, s)
	}
	for i := 1; i < len(s); i++ {
		if !letter(s[i]) && (s[i] < '0' || s[i] > '9') {
			return "", fmt.Errorf("%w %.64q", ErrBadID, s)
		}
	}
	return ID(s), nil
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' }
