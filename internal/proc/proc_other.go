//go:build !unix

package proc

import "os"

type signal int

const sigTerm, sigCont, sigKill signal = 15, 18, 9

// A Process cannot exist on this system.
type Process struct {
	Output *os.File
	exited chan struct{}
}

// Start returns ErrUnsupported.
func Start(Spec) (*Process, error) { return nil, ErrUnsupported }

// MarkInherited does nothing: this system cannot mark all descriptors at once.
func MarkInherited() {}

// Pid returns 0.
func (p *Process) Pid() int { return 0 }

// Identity returns the pid alone.
func (p *Process) Identity() Identity { return Identity{PID: p.Pid()} }

// Exited returns a nil channel.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit returns an unknown end.
func (p *Process) Exit() Exit { return Exit{Code: -1, Unknown: true} }

// Ended reports true.
func (p *Process) Ended() bool { return true }

// Close does nothing.
func (p *Process) Close() error { return nil }

// Group returns nil.
func (p *Process) Group() []int { return nil }

func (p *Process) holdReap() (release func()) { return func() {} }

func (p *Process) signalGroup(signal) error { return ErrUnsupported }

func (p *Process) groupAlive() bool { return len(p.Group()) > 0 }
