package proc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	sigTerm = unix.SIGTERM
	sigCont = unix.SIGCONT
	sigKill = unix.SIGKILL

	// pidfdGroup is PIDFD_SIGNAL_PROCESS_GROUP of linux/pidfd.h, since Linux 6.9.
	pidfdGroup = 1 << 2
)

// A Process is a running or ended child that leads its own session and group.
type Process struct {
	Output *os.File // what it and its children print; the caller reads and closes it

	pid    int
	id     Identity
	lost   bool          // no child of ours: its host has died
	handle *os.File      // pidfd; outlives the reaping, so that the group can be signalled
	exited chan struct{} // closed when the process has been reaped
	exit   Exit          // set before exited is closed, read only after

	// reap is held by the waiter for the moment of reaping, and by a kill that
	// can signal the group only by number for as long as that number must stay ours.
	reap sync.Mutex
}

// Start starts a process with stdout and stderr on one pipe and no other
// descriptor but stdin. The caller must read Output to its end or close it,
// and call Close when it needs the group no more.
func Start(s Spec) (*Process, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	pid, pidfd, err := s.start(pipe[1])
	unix.Close(pipe[1]) // the write end stays blocking: the children share it
	if err != nil {
		unix.Close(pipe[0])
		return nil, err
	}
	p := &Process{Output: pollable(pipe[0], "output"), pid: pid, exited: make(chan struct{})}
	if pidfd >= 0 {
		p.handle = pollable(pidfd, "pidfd")
	}
	p.id = identify(pid, p.handle) // before it can be reaped
	go p.wait()
	return p, nil
}

// start starts the process with output as its standard output and error.
func (s Spec) start(output int) (pid, pidfd int, err error) {
	stdin, err := s.Stdin.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	// Under Control the descriptor stays open until the child has it, whoever
	// closes the file meanwhile.
	cerr := stdin.Control(func(fd uintptr) {
		pid, _, err = syscall.StartProcess(s.Path, s.Args, &syscall.ProcAttr{
			Dir:   s.Dir,
			Env:   s.Env,
			Files: []uintptr{fd, uintptr(output), uintptr(output)},
			Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
		})
	})
	return pid, pidfd, errors.Join(cerr, err)
}

// MarkInherited marks every descriptor of this program from 3 on close-on-exec:
// those it opened itself are already, those it inherited may not be.
func MarkInherited() {
	// Since Linux 5.11; before that an inherited descriptor stays as it is.
	unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// pollable makes a file that waits in the runtime's poller and not in a thread.
func pollable(fd int, name string) *os.File {
	unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), name)
}

// wait waits for the process and reaps it. It ends when the process does.
func (p *Process) wait() {
	if p.handle != nil {
		if c, err := p.handle.SyscallConn(); err == nil {
			c.Read(func(fd uintptr) bool { return readable(int(fd)) })
		}
	}
	p.reap.Lock()
	defer p.reap.Unlock()
	var ws unix.WaitStatus
	_, err := ignoringEINTR(func() (int, error) { return unix.Wait4(p.pid, &ws, 0, nil) })
	switch {
	case err != nil:
		p.exit = Exit{Code: -1, Unknown: true}
	case ws.Signaled():
		p.exit = Exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
	default:
		p.exit = Exit{Code: ws.ExitStatus()}
	}
	close(p.exited)
}

// readable reports whether a pidfd says that its process has ended.
func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := ignoringEINTR(func() (int, error) { return unix.Poll(fds, 0) })
	return n > 0 || err != nil
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); err != unix.EINTR {
			return n, err
		}
	}
}

// Pid returns the process's id, which is also that of its group and session.
func (p *Process) Pid() int { return p.pid }

// Identity returns what tells the process from others of its number.
func (p *Process) Identity() Identity { return p.id }

// Exited returns a channel that is closed when the process has ended and been
// reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit returns how the process ended. It may be called once Exited is closed.
func (p *Process) Exit() Exit { return p.exit }

// Ended reports whether the process has ended, reaped or not.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	ended := false
	if p.handle != nil {
		if c, err := p.handle.SyscallConn(); err == nil {
			c.Control(func(fd uintptr) { ended = readable(int(fd)) })
		}
	}
	return ended
}

// Close gives back the handle. The group cannot be signalled after it.
func (p *Process) Close() error {
	if p.handle == nil {
		return nil
	}
	return p.handle.Close()
}

// signalGroup signals every process of the group. With sig 0 it asks whether
// there is one; a zombie counts.
func (p *Process) signalGroup(sig unix.Signal) error {
	err := error(unix.EINVAL)
	if p.handle != nil {
		c, cerr := p.handle.SyscallConn()
		if cerr != nil {
			return cerr
		}
		cerr = c.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), sig, nil, pidfdGroup) })
		if cerr != nil {
			return cerr
		}
	}
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// By number, while it cannot be somebody else's: until the process is reaped,
	// which for one that is no child of ours may be as soon as it has ended.
	select {
	case <-p.exited:
		return unix.ESRCH
	default:
	}
	if p.lost && p.Ended() {
		return unix.ESRCH
	}
	return unix.Kill(-p.pid, sig)
}

// holdReap keeps the process from being reaped until the returned function is
// called, if its group can be signalled by number alone.
func (p *Process) holdReap() (release func()) {
	if p.handle != nil && byHandle() {
		return func() {}
	}
	p.reap.Lock()
	return p.reap.Unlock
}

// byHandle reports whether the kernel signals a group through a pidfd.
var byHandle = sync.OnceValue(func() bool {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// Older kernels refuse the flag before they look at anything else.
	return !errors.Is(unix.PidfdSendSignal(fd, 0, nil, pidfdGroup), unix.EINVAL)
})

// Group returns the ids of the processes in the group that are alive. Zombies
// are not: nothing of them is left to end.
func (p *Process) Group() []int {
	if errors.Is(p.signalGroup(0), unix.ESRCH) {
		return nil
	}
	return look()[p.pid]
}

// groupAlive reports whether there is a process in the group, or was a moment ago.
func (p *Process) groupAlive() bool {
	return !errors.Is(p.signalGroup(0), unix.ESRCH) && lately.alive(p.pid)
}

// A census is a look at all processes. Many kills at once share one.
type census struct {
	mu     sync.Mutex // held during the look: who comes meanwhile waits for it
	taken  time.Time  // when it began
	groups map[int][]int
}

// censusAge is how old a census may be.
const censusAge = 10 * time.Millisecond

var lately census

// alive reports whether a group has a living process. An older look serves only
// to say that it has: that it has none is final, and looked at.
func (c *census) alive(pgid int) bool {
	asked := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if asked.Sub(c.taken) > censusAge || len(c.groups[pgid]) == 0 {
		c.taken, c.groups = time.Now(), look()
	}
	return len(c.groups[pgid]) > 0
}

// look goes through /proc and returns the living processes by their groups.
func look() map[int][]int {
	groups := make(map[int][]int)
	dir, err := os.Open("/proc")
	if err != nil {
		return groups
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return groups
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if state, group := stat(name); state != 0 && state != 'Z' && state != 'X' {
			groups[group] = append(groups[group], pid)
		}
	}
	return groups
}

// stat returns the state and the group of a process, or zeros.
func stat(pid string) (state byte, group int) {
	f := statFields(pid)
	if len(f) < 3 {
		return 0, 0
	}
	group, _ = strconv.Atoi(string(f[2]))
	return f[0][0], group
}

// statFields returns the fields of proc_pid_stat(5) from the third on: those
// after the name, which stands in parentheses and may itself hold any character.
func statFields(pid string) [][]byte {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}
