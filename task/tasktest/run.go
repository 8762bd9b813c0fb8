package tasktest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/afoot-go/afoot/task"
)

const (
	// limit is how long one call of Kill may take before it counts as hanging.
	limit = 10 * time.Second

	// promptly is how long one may take whose context has ended.
	promptly = time.Second
)

// Run checks a task against the promises of [task.Task], one named subtest for
// each. A failure names the promise.
//
// newTask is called for a fresh task in each subtest. It must return one that is
// running and will not end by itself, and for the last promise to mean much it
// prints. A Task alone can only be taken at its word; if it has a State method, as
// a *task.Handle and a type that embeds task.StateBase have, Run also looks whether
// it has ended when it says so; with a Wait method too, as a *task.Handle has,
// whether it goes on stopping without being asked again.
func Run(t *testing.T, newTask func(t *testing.T) task.Task) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(t.Context(), newTask(t)); err != nil {
				t.Errorf("%v\nbroken promise: %s", err, c.promise)
			}
		})
	}
}

// checks has one entry for each promise of task.Task.Kill.
var checks = []struct {
	name, promise string
	run           func(context.Context, task.Task) error
}{
	{"kill stops it", "When Kill returns nil the task has stopped.", killStops},
	{"kill after the end", "Killing a task that has already ended returns nil.", killAfterEnd},
	{"kill from many goroutines", "Of any number of concurrent calls each returns as one alone would.", killTogether},
	{"kill with an ended context", "If ctx ends first, Kill returns ctx.Err() and the task goes on stopping in the background; Kill may be called again.", killEndedContext},
	{"kill with unread output", "Kill never waits for anyone to read the task's output.", killUnread},
}

func killStops(ctx context.Context, t task.Task) error {
	if err := kill(ctx, t); err != nil {
		return fmt.Errorf("Kill = %w, want nil", err)
	}
	return stopped(t)
}

func killAfterEnd(ctx context.Context, t task.Task) error {
	if err := kill(ctx, t); err != nil {
		return fmt.Errorf("first Kill = %w, want nil", err)
	}
	if err := kill(ctx, t); err != nil {
		return fmt.Errorf("second Kill = %w, want nil", err)
	}
	return nil
}

func killTogether(ctx context.Context, t task.Task) error {
	const callers = 8
	results := make(chan error, callers)
	for range callers {
		go func() { results <- kill(ctx, t) }()
	}
	var errs []error
	for range callers {
		errs = append(errs, <-results)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("concurrent calls of Kill = %w, want nil", err)
	}
	return stopped(t)
}

func killEndedContext(ctx context.Context, t task.Task) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	// It may have stopped by the time Kill looks.
	began := time.Now()
	if err := kill(ended, t); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("Kill with an ended context = %w, want nil or context.Canceled", err)
	}
	if took := time.Since(began); took > promptly {
		return fmt.Errorf("Kill with an ended context took %v", took)
	}
	if w, ok := t.(interface {
		Wait(context.Context) (task.State, error)
	}); ok {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if _, err := w.Wait(ctx); err != nil {
			return fmt.Errorf("the task has not stopped by itself: %w", err)
		}
	}
	return killStops(ctx, t)
}

func killUnread(ctx context.Context, t task.Task) error {
	// Nothing in this package reads output, so that a Kill which waits hangs.
	return killStops(ctx, t)
}

// kill calls Kill and turns a panic, or no return, into an error.
func kill(ctx context.Context, t task.Task) error {
	result := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				result <- fmt.Errorf("panic: %v", v)
			}
		}()
		result <- t.Kill(ctx)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
		return fmt.Errorf("no return after %v", limit)
	}
}

// stopped returns an error if the task can be asked and has not ended.
func stopped(t task.Task) error {
	s, ok := t.(interface{ State() task.State })
	if !ok {
		return nil
	}
	if st := s.State(); !st.Status.Terminal() {
		return fmt.Errorf("after Kill returned nil the status is %s", st.Status)
	}
	return nil
}
