// Package proc starts processes that lead a session of their own, waits for
// them, and ends them together with their process group.
//
// A process is signalled through a handle the kernel keeps for it, where there
// is one, and otherwise only while it has not been reaped: a number that now
// belongs to somebody else is never signalled.
package proc

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrUnsupported is returned by Start on systems for which this package has no
// process control. It matches errors.ErrUnsupported.
var ErrUnsupported = fmt.Errorf("processes cannot be controlled on this system: %w", errors.ErrUnsupported)

// A Spec says what to start.
type Spec struct {
	Path  string   // of the program, absolute
	Args  []string // the first is the program's own name
	Env   []string
	Dir   string // empty: the caller's own
	Stdin *os.File
}

// An Exit is how a process ended.
type Exit struct {
	Code    int    // exit code, or -1 if it has none
	Signal  string // name of the signal that ended it, such as "SIGKILL"
	Unknown bool   // somebody else in this program waited for it first
}

// killWait is how long a group may take to disappear after SIGKILL before its
// members are called survivors: a process in an uninterruptible system call
// outlives the signal.
const killWait = 2 * time.Second

// KillGroup ends every process of the group: SIGTERM and then SIGCONT, so that
// stopped ones can act on it, and SIGKILL to those left after grace, or when hurry
// is closed. It returns the pids that are alive all the same, normally none. One
// call may run at a time.
func (p *Process) KillGroup(grace time.Duration, hurry <-chan struct{}) (survivors []int) {
	defer p.holdReap()()
	p.signalGroup(sigTerm)
	p.signalGroup(sigCont)
	if p.groupGone(grace, hurry) {
		return nil
	}
	p.signalGroup(sigKill)
	if p.groupGone(killWait, nil) {
		return nil
	}
	return p.Group()
}

// groupGone waits until the group is empty, for at most d and until hurry is
// closed, and reports whether it is.
func (p *Process) groupGone(d time.Duration, hurry <-chan struct{}) bool {
	deadline := time.Now().Add(d)
	exited := p.Exited()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if !p.groupAlive() {
			return true
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		// There is no event for a group that becomes empty, only one for its leader.
		select {
		case <-exited:
			exited = nil
		case <-hurry:
			return !p.groupAlive()
		case <-time.After(min(pause, left)):
		}
	}
}
