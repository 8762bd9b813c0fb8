package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Shutdown refuses new tasks and waits until those there are have ended, and their
// ends have been announced. If ctx
// ends first it returns ctx.Err(); the registry goes on refusing, and Shutdown
// may be called again. Close is still to be called.
func (r *Registry) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	r.shut = true
	if r.open == 0 {
		r.mu.Unlock()
		return nil
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()

	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A CloseError says what a Close found: work that a host which merely exits
// would have lost without a word.
type CloseError struct {
	Killed []State // tasks that were running
	Left   []State // tasks that had ended, but had left processes, ended now
	Untold []State // tasks that had ended, but the model has not been told
	Err    error   // what could not be ended or released
}

func (e *CloseError) Error() string {
	var parts []string
	for _, s := range e.Killed {
		parts = append(parts, fmt.Sprintf("%s %q was running: %s (%s)", s.ID, s.Description, s.Status, s.Reason))
	}
	for _, s := range e.Left {
		parts = append(parts, fmt.Sprintf("%s %q had left processes", s.ID, s.Description))
	}
	for _, s := range e.Untold {
		parts = append(parts, fmt.Sprintf("%s %q not told: %s", s.ID, s.Description, s.Status))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return "task: closed with " + strings.Join(parts, "; ")
}

func (e *CloseError) Unwrap() error { return e.Err }

// lastWait is how long Close waits for a sink that is being pushed to.
const lastWait = time.Second

// Close kills what runs, closes the kinds, and removes the files of outputs that
// are in no session. What resists for Config.CloseLimit the kinds end by force,
// which takes them a moment, or two seconds where a process does not even go when
// it gets SIGKILL. If everything had ended and been told, Close returns nil, and
// otherwise a *CloseError that says what became of what.
//
// The notifications of what it kills are pushed as always. With Config.Dir they
// are told by the next host of the session as well, since nothing is recorded
// after Close: a host that wants to tell them itself calls [Registry.KillOwned],
// tells, and then closes. A task that resists until the limit is recorded as killed
// with the error that says so. Handles and the state of tasks stay readable after
// Close, outputs do not.
//
// Closing twice does nothing more and returns nil.
func (r *Registry) Close() (err error) {
	r.closing.Do(func() { err = r.close() })
	return err
}

func (r *Registry) close() error {
	r.mu.Lock()
	r.shut = true
	r.mu.Unlock()
	left := r.handles(func(e *entry) bool { return e.leftLocked() && e.base.status().Terminal() })

	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(r.cfg.CloseLimit, DefaultCloseLimit))
	defer cancel()
	all, err := r.killAll(ctx, HostClosed, func(*entry) bool { return true })
	errs := []error{err}
	for _, k := range r.cfg.Kinds {
		errs = append(errs, k.Close())
	}
	for _, h := range all {
		r.end(h.e, Result{Status: Killed, Error: "it did not end in time and may still run"})
	}
	// All have ended; some may be on their way into the queue.
	last, stop := context.WithTimeout(context.Background(), lastWait)
	defer stop()
	r.Shutdown(last)
	killed := slices.DeleteFunc(slices.Clone(all), func(h *Handle) bool { return slices.Contains(left, h) })
	untold := r.handles(func(e *entry) bool { return e.told.IsZero() && !slices.Contains(killed, &e.handle) })
	r.stopWork()
	for _, h := range r.handles(func(*entry) bool { return true }) {
		errs = append(errs, h.e.out.Close())
	}
	errs = append(errs, r.spill.Close(), r.closeSessions())
	r.closeWatchers()

	closed := &CloseError{Killed: states(killed), Left: states(left), Untold: states(untold), Err: errors.Join(errs...)}
	if len(closed.Killed)+len(closed.Left)+len(closed.Untold) == 0 && closed.Err == nil {
		return nil
	}
	return closed
}

// stopWork ends the registry's own goroutines and waits for them.
func (r *Registry) stopWork() {
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	r.work.Wait()
}

func states(handles []*Handle) []State {
	states := make([]State, len(handles))
	for i, h := range handles {
		states[i] = h.State()
	}
	return states
}
