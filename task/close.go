package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// Shutdown refuses new tasks and waits until those there are have ended. If ctx
// ends first it returns ctx.Err(); the registry goes on refusing, and Shutdown
// may be called again. Close is still to be called.
func (r *Registry) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	r.shut = true
	if r.live == 0 {
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
	Killed []State // tasks that were running, and processes that tasks had left
	Untold []State // tasks that had ended, but the model has not been told
	Err    error   // what could not be ended or released
}

func (e *CloseError) Error() string {
	var parts []string
	for _, s := range e.Killed {
		parts = append(parts, fmt.Sprintf("%s %q was running: %s (%s)", s.ID, s.Description, s.Status, s.Reason))
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

// Close kills what runs, closes the kinds, and removes the files of outputs. It
// takes at most Config.CloseLimit, and a little. If everything had ended and
// been told, it returns nil, and otherwise a *CloseError that says what became
// of what.
//
// The notifications of what it kills are pushed as always. A task that resists
// until the limit is recorded as killed with the error that says so. Handles
// and the state of tasks stay readable after Close, outputs do not.
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
	untold := r.handles(func(e *entry) bool { return e.told.IsZero() && !e.leftLocked() })

	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(r.cfg.CloseLimit, DefaultCloseLimit))
	defer cancel()
	killed, err := r.killAll(ctx, HostClosed, func(*entry) bool { return true })
	for _, h := range killed {
		r.end(h.e, Result{Status: Killed, Error: "it did not end in time and may still run"})
	}
	r.stopWork()
	errs := []error{err}
	for _, k := range r.cfg.Kinds {
		errs = append(errs, k.Close())
	}
	for _, h := range r.handles(func(*entry) bool { return true }) {
		errs = append(errs, h.e.out.Close())
	}
	errs = append(errs, r.spill.Close())
	r.closeWatchers()

	closed := &CloseError{Killed: states(killed), Untold: states(untold), Err: errors.Join(errs...)}
	if len(closed.Killed) == 0 && len(closed.Untold) == 0 && closed.Err == nil {
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
