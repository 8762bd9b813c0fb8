package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/afoot-go/afoot/task"
)

// A Result is what [Shell.Run] knows when it returns.
type Result struct {
	// State is final, unless Backgrounded is set.
	State task.State `json:"state"`

	// Output is what the command has printed so far, as text, clipped to
	// output.DefaultView characters.
	Output string `json:"output"`

	// Backgrounded reports that the command still runs, as a background task
	// with the same id and output.
	Backgrounded bool `json:"backgrounded"`

	Elapsed   time.Duration `json:"elapsed"`   // since the start
	Threshold time.Duration `json:"threshold"` // the time after which it was to be put in the background; 0: never

	Handle *task.Handle `json:"-"`
}

// String returns the result as a model may be given it: the output, and then
// one line that says how the command ended or that it goes on.
func (r Result) String() string {
	s := r.Output
	if s != "" && s[len(s)-1] != '\n' {
		s += "\n"
	}
	if r.Backgrounded {
		return s + fmt.Sprintf("still running in the background after %v (threshold %v), id %s",
			r.Elapsed.Round(time.Millisecond), r.Threshold, r.State.ID)
	}
	return s + r.State.Summary
}

// Run runs a command in the foreground and returns its result. It is taken: no
// notification follows. A command that fails is a result and not an error.
//
// If the command still runs after promote, it goes on as a background task:
// Run returns with Backgrounded set, and the end comes through the queue. If
// promote is zero, Run waits for the end.
//
// If ctx ends while Run waits, the command is killed and Run returns its result
// together with ctx.Err(). The end of ctx after Run has returned does nothing.
// Any other error is one of [Shell.Start], or says that the command could not be
// killed.
func (s *Shell) Run(ctx context.Context, tasks *task.Registry, cmd Command, promote time.Duration) (Result, error) {
	if promote < 0 {
		return Result{}, fmt.Errorf("%w: negative promotion time %v", ErrInvalid, promote)
	}
	began := time.Now()
	h, err := s.register(ctx, tasks, cmd)
	if err != nil {
		return Result{}, err
	}
	taker := h.Taker() // before the start: the end then goes to nobody else
	if err := s.launch(h, cmd); err != nil {
		taker.Take(context.WithoutCancel(ctx)) // it has ended, and the error tells of it
		return Result{}, err
	}
	wait, stop := ctx, context.CancelFunc(func() {})
	if promote > 0 {
		wait, stop = context.WithTimeout(ctx, promote)
	}
	defer stop()

	res := Result{Handle: h, Threshold: promote}
	if _, err = h.Wait(wait); err != nil && ctx.Err() != nil {
		err = giveUp(ctx, h)
	} else {
		err = nil
	}
	// Read before the result is taken: a told task may be evicted.
	res.Output = view(h)
	if res.State, res.Backgrounded = settle(wait, taker); res.Backgrounded {
		h.Update(func(st task.State) task.State { st.Backgrounded = true; return st })
		res.State = h.State()
	}
	res.Elapsed = time.Since(began)
	return res, err
}

// settle takes the result if there is one when wait ends, and otherwise leaves
// the task to the queue.
func settle(wait context.Context, taker *task.Taker) (st task.State, goesOn bool) {
	ended, cancel := context.WithCancel(wait)
	cancel()
	st, err := taker.Take(ended) // what is there wins over the end of the context
	return st, err != nil
}

// view returns what the command has printed so far as text.
func view(h *task.Handle) string {
	v, err := h.Output().View(0, 0)
	if err != nil {
		return "The output cannot be read: " + err.Error()
	}
	return v.Text
}

// giveUp kills a command whose caller has gone. If that is impossible it lives on
// as a task, of whose end the queue will tell.
func giveUp(ctx context.Context, h *task.Handle) error {
	// KillGroup ends in bounded time, and so does the end of the task after it.
	if err := h.Kill(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return ctx.Err()
}
