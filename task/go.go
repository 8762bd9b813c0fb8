package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/output"
)

// ErrKilled is the cause of the end of a function's context when its task is
// killed.
var ErrKilled = errors.New("task: killed")

// A Run is a function's own view of the task it runs as.
type Run struct{ h *Handle }

// ID returns the task's id.
func (r *Run) ID() ID { return r.h.ID() }

// Output returns where the function prints to.
func (r *Run) Output() *output.TaskOutput { return r.h.Output() }

// Progress tells the task's owner, in one line, how far the function has got.
func (r *Run) Progress(line string) {
	r.h.Notify(notify.Notification{Source: notify.Progress, Summary: line})
}

// A Func is a Go function that runs as a task. What it returns as text becomes
// the result that the model is given. A nil error is Completed, any other
// Failed, and so is a panic.
type Func func(ctx context.Context, run *Run) (text string, err error)

// Go runs f as a task in a goroutine of its own. The context given to f has the
// values of ctx but not its end: it ends when the task is killed, with the cause
// ErrKilled, and f is then expected to return. The error is one of
// [Registry.Register], or ErrEnded if the task was killed before f was called.
func (r *Registry) Go(ctx context.Context, spec Spec, f Func) (*Handle, error) {
	h, err := r.Register(ctx, spec)
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &funcTask{cancel: cancel, done: make(chan struct{})}
	if err := h.Start(t); err != nil {
		cancel(err)
		return nil, err
	}
	go t.run(inner, h, f)
	return h, nil
}

// A funcTask is a function that runs as a task.
type funcTask struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the end has been reported

	// first decides between a function that returns and a kill: whoever is
	// first swaps it from zero.
	first atomic.Int32
}

const (
	returnedFirst = 1
	killedFirst   = 2
)

func (t *funcTask) Kill(ctx context.Context) error {
	t.first.CompareAndSwap(0, killedFirst)
	t.cancel(ErrKilled)
	select {
	case <-t.done:
		return nil
	default:
	}
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *funcTask) run(ctx context.Context, h *Handle, f Func) {
	defer close(t.done)
	defer t.cancel(nil)
	// Until f has returned, what ends it is a panic or runtime.Goexit.
	res := Result{Status: Failed, Reason: Panicked, Error: "the function called runtime.Goexit"}
	defer func() {
		if v := recover(); v != nil {
			res.Error = fmt.Sprintf("panic: %v", v)
			res.Text = string(debug.Stack())
		}
		if !t.first.CompareAndSwap(0, returnedFirst) && t.first.Load() == killedFirst {
			res.Status, res.Reason = Killed, ""
		}
		h.Finish(res)
	}()
	text, err := f(ctx, &Run{h: h})
	res = Result{Status: Completed, Text: text}
	if err != nil {
		res.Status, res.Error = Failed, err.Error()
	}
}
