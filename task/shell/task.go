package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/afoot-go/afoot/internal/proc"
	"github.com/afoot-go/afoot/task"
)

// How long the end of a command waits for the end of its output, while a
// process that it left holds the pipe.
const (
	quietAfter = 100 * time.Millisecond // without a byte
	drainLimit = 500 * time.Millisecond // in all
)

// lookAgain is how often the processes that a command left are looked for: they
// keep its record, and nothing else waits for them.
const lookAgain = time.Second

// A SurvivorError says which processes of a task could not be ended: they are
// alive two seconds after SIGKILL. Kill may be called again.
type SurvivorError struct {
	ID   task.ID
	PIDs []int
}

func (e *SurvivorError) Error() string {
	return fmt.Sprintf("shell: processes of %s that live after SIGKILL: %v", e.ID, e.PIDs)
}

// A command is the process of a task.
type command struct {
	shell *Shell
	h     *task.Handle
	proc  *proc.Process
	limit time.Duration // 0: none
	grace time.Duration

	eof      chan struct{} // closed when all output has been read
	finished chan struct{} // closed when the end has been reported
	hurry    func()        // closes hurried, once
	hurried  chan struct{} // closed when a kill is to use force at once
	free     func()        // closes freed, once
	freed    chan struct{} // closed when nobody will signal the group any more

	mu      sync.Mutex // guards the fields below
	killing *killing   // the kill that runs or has succeeded; nil before
	killed  bool       // the command was alive when it was first killed
}

// A killing is one attempt to end a command's group.
type killing struct {
	gone chan struct{} // closed when the group is gone, or cannot be ended
	done chan struct{} // closed when, besides, the end has been reported
	err  error         // set before gone is closed, read only after
}

// newCommand makes the task of a process that has just been started, and begins
// to read what it prints.
func (s *Shell) newCommand(h *task.Handle, cmd Command, p *proc.Process, dir string) (*command, error) {
	c := &command{
		shell: s, h: h, proc: p,
		limit: cmp.Or(cmd.TimeLimit, s.cfg.TimeLimit), grace: s.grace(),
		eof: make(chan struct{}), finished: make(chan struct{}), freed: make(chan struct{}),
	}
	c.hurried = make(chan struct{})
	c.hurry = sync.OnceFunc(func() { close(c.hurried) })
	c.free = sync.OnceFunc(func() { close(c.freed) })
	if err := s.add(c); err != nil {
		p.Output.Close()
		p.KillGroup(0, nil)
		p.Close()
		return nil, err
	}
	data, _ := json.Marshal(newData(p.Identity(), dir)) // no value of it fails
	h.Update(func(st task.State) task.State { st.Data = data; return st })
	return c, nil
}

// add counts a command among those that hold a descriptor, and starts reading.
func (s *Shell) add(c *command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return task.ErrClosed
	}
	s.open[c] = struct{}{}
	s.readers.Go(c.read)
	return nil
}

// read keeps what the command prints, until nobody has the pipe any more, and
// gives the descriptors back when they are of no more use.
func (c *command) read() {
	if _, err := c.h.Output().ReadFrom(c.proc.Output); err != nil {
		// The task has been evicted, and nobody reads it any more. Closing the
		// pipe would kill what still prints.
		io.Copy(io.Discard, c.proc.Output)
	}
	c.proc.Output.Close()
	close(c.eof)
	select {
	case <-c.finished:
	case <-c.freed:
	}
	c.h.Output().End()
	<-c.freed
	c.proc.Close()

	s := c.shell
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// supervise waits for the end and reports it.
func (c *command) supervise() {
	defer close(c.finished)
	if c.limit > 0 {
		defer time.AfterFunc(c.limit, func() { c.h.KillFor(context.Background(), task.TimeLimit) }).Stop()
	}
	<-c.proc.Exited()

	c.mu.Lock()
	killed, k := c.killed, c.killing
	c.mu.Unlock()
	if killed {
		<-k.gone // told when all of it is gone, not only its leader
	}
	c.drain()
	res := c.result(killed)
	c.h.Finish(res)
	if len(res.Descendants) == 0 {
		c.free()
		return
	}
	go c.watchLeft(res.Descendants)
}

// watchLeft keeps the processes that the command left in its state, until there
// are none. It ends when the group is not to be signalled any more.
func (c *command) watchLeft(left []int) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for len(left) > 0 {
		select {
		case <-c.freed:
			return
		case <-tick.C:
		}
		if now := c.proc.Group(); !slices.Equal(now, left) {
			left = now
			c.h.Update(func(st task.State) task.State { st.Descendants = left; return st })
		}
	}
	c.free()
}

// drain waits for the end of the output, or for what stands for it.
func (c *command) drain() {
	select {
	case <-c.eof:
		return
	default:
	}
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	for before := int64(-1); ; {
		st := c.h.Output().Stat()
		if st.Size+st.Dropped == before {
			return
		}
		before = st.Size + st.Dropped
		select {
		case <-c.eof:
			return
		case <-limit.C:
			return
		case <-time.After(quietAfter):
		}
	}
}

// result is the end of the command in the words of its task.
func (c *command) result(killed bool) task.Result {
	exit := c.proc.Exit()
	res := task.Result{
		Exit:        &task.Exit{Code: exit.Code, Signal: exit.Signal, Unknown: exit.Unknown},
		Descendants: c.proc.Group(),
	}
	select {
	case <-c.eof:
	default:
		res.OutputOpen = true
	}
	switch {
	case killed:
		res.Status = task.Killed
	case exit.Unknown:
		res.Status, res.Reason = task.Failed, task.Exited
		res.Error = "exit status unknown: the host waited for the process elsewhere"
	case exit.Signal != "":
		res.Status, res.Reason = task.Failed, task.Signaled
	case exit.Code != 0:
		res.Status, res.Reason = task.Failed, task.Exited
	default:
		res.Status, res.Reason = task.Completed, task.Exited
	}
	res.Summary = c.summary(res)
	return res
}

// Kill ends the command's process group, as package shell says.
func (c *command) Kill(ctx context.Context) error {
	k := c.kill()
	select {
	case <-k.done:
		return k.err
	default:
	}
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill begins to end the group, or joins the attempt that has been made. One
// that found survivors is made again.
func (c *command) kill() *killing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.killing; k != nil && !k.failed() {
		return k
	}
	if c.killing == nil {
		c.killed = !c.proc.Ended()
	}
	k := &killing{gone: make(chan struct{}), done: make(chan struct{})}
	c.killing = k
	go c.end(k)
	return k
}

// failed reports whether the attempt is over and has left survivors.
func (k *killing) failed() bool {
	select {
	case <-k.done:
		return k.err != nil
	default:
		return false
	}
}

func (c *command) end(k *killing) {
	if survivors := c.proc.KillGroup(c.grace, c.hurried); len(survivors) > 0 {
		k.err = &SurvivorError{ID: c.h.ID(), PIDs: survivors}
	}
	close(k.gone)
	if k.err == nil {
		<-c.finished
		c.free()
	}
	close(k.done)
}

// summary words the end in one line.
func (c *command) summary(res task.Result) string {
	st := c.h.State()
	var how string
	switch {
	case res.Status == task.Killed:
		how = "was killed (" + c.killedWhy(st) + ")"
	case res.Exit.Unknown:
		how = "failed (exit code unknown)"
	case res.Exit.Signal != "":
		how = "failed (signal " + res.Exit.Signal + ")"
	case res.Exit.Code != 0:
		how = fmt.Sprintf("failed (exit code %d)", res.Exit.Code)
	default:
		how = "completed (exit code 0)"
	}
	s := fmt.Sprintf("Background command \"%s\" %s", st.Name(), how)
	if st.OutputDropped > 0 {
		s += fmt.Sprintf("; %d bytes of output were not kept", st.OutputDropped)
	}
	if st.OutputError != "" {
		s += ": " + st.OutputError
	}
	if len(res.Descendants) > 0 {
		s += fmt.Sprintf("; processes it left: %v", res.Descendants)
	}
	return s
}

func (c *command) killedWhy(st task.State) string {
	switch st.Reason {
	case task.TimeLimit:
		return fmt.Sprintf("time limit of %v", c.limit)
	case task.OutputLimit:
		return fmt.Sprintf("output limit of %d bytes", st.OutputSize)
	}
	return string(st.Reason)
}
