//go:build unix && !linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	sigTerm = unix.SIGTERM
	sigCont = unix.SIGCONT
	sigKill = unix.SIGKILL
)

// A Process is a running or ended child that leads its own session and group.
type Process struct {
	Output *os.File // what it and its children print; the caller reads and closes it

	child  *os.Process
	exited chan struct{} // closed when the process has been reaped
	exit   Exit          // set before exited is closed, read only after
	reap   sync.Mutex    // held to publish the end, and to signal the group before it
}

// Start starts a process with stdout and stderr on one pipe and no other
// descriptor but stdin. The caller must read Output to its end or close it,
// and call Close when it needs the group no more.
func Start(s Spec) (*Process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer w.Close()
	child, err := s.start(w)
	if err != nil {
		r.Close()
		return nil, err
	}
	p := &Process{Output: r, child: child, exited: make(chan struct{})}
	go p.wait()
	return p, nil
}

// start starts the process with output as its standard output and error.
func (s Spec) start(output *os.File) (child *os.Process, err error) {
	stdin, err := s.Stdin.SyscallConn()
	if err != nil {
		return nil, err
	}
	// Under Control the descriptor stays open until the child has it, whoever
	// closes the file meanwhile.
	cerr := stdin.Control(func(uintptr) {
		child, err = os.StartProcess(s.Path, s.Args, &os.ProcAttr{
			Dir: s.Dir, Env: s.Env, Files: []*os.File{s.Stdin, output, output},
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
	})
	return child, errors.Join(cerr, err)
}

func (p *Process) wait() {
	st, err := p.child.Wait()
	p.reap.Lock()
	defer p.reap.Unlock()
	p.exit = Exit{Code: -1, Unknown: true}
	if err == nil {
		ws := st.Sys().(syscall.WaitStatus)
		p.exit = Exit{Code: ws.ExitStatus()}
		if ws.Signaled() {
			p.exit = Exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
		}
	}
	close(p.exited)
}

// MarkInherited does nothing: this system cannot mark all descriptors at once.
func MarkInherited() {}

// Pid returns the process's id, which is also that of its group and session.
func (p *Process) Pid() int { return p.child.Pid }

// Identity returns the pid alone.
func (p *Process) Identity() Identity { return Identity{PID: p.Pid()} }

// Exited returns a channel that is closed when the process has ended and been
// reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit returns how the process ended. It may be called once Exited is closed.
func (p *Process) Exit() Exit { return p.exit }

// Ended reports whether the process has ended and been reaped.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Close does nothing: there is no handle on this system.
func (p *Process) Close() error { return nil }

func (p *Process) holdReap() (release func()) { return func() {} }

// signalGroup signals the group while its leader has not been reaped: after
// that its number may be somebody else's.
func (p *Process) signalGroup(sig unix.Signal) error {
	p.reap.Lock()
	defer p.reap.Unlock()
	if p.Ended() {
		return unix.ESRCH
	}
	return unix.Kill(-p.child.Pid, sig)
}

// Group returns the id of the process while it is alive: this system shows no
// members of a group.
func (p *Process) Group() []int {
	if p.Ended() {
		return nil
	}
	return []int{p.child.Pid}
}

func (p *Process) groupAlive() bool { return len(p.Group()) > 0 }
