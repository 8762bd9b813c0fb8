package tasktest

import (
	"context"
	"fmt"
	"testing"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
)

// A Fake is a running task without a process or a goroutine: nothing happens
// in it but what the test says. Killing it ends it at once.
//
// Its methods may be called from any goroutine.
type Fake struct {
	*task.Handle
	t testing.TB
}

// NewFake registers a task and starts it. The test fails if that is refused.
func NewFake(t testing.TB, tasks *task.Registry, spec task.Spec) *Fake {
	t.Helper()
	h, err := tasks.Register(t.Context(), spec)
	if err != nil {
		t.Fatalf("tasktest: %v", err)
	}
	f := &Fake{Handle: h, t: t}
	if err := h.Start(fakeTask{h}); err != nil {
		t.Fatalf("tasktest: %v", err)
	}
	return f
}

// fakeTask is what a kill of a Fake reaches.
type fakeTask struct{ h *task.Handle }

func (f fakeTask) Kill(context.Context) error {
	f.h.Finish(task.Result{Status: task.Killed}) // an error means that it has ended already
	return nil
}

// Print appends text to the task's output. The test fails if the task has ended.
func (f *Fake) Print(text string) {
	f.t.Helper()
	if _, err := f.Output().Write([]byte(text)); err != nil {
		f.t.Errorf("tasktest: Print to %s: %v", f.ID(), err)
	}
}

// Stall says that the task seems to wait for an answer: its state has Stalled
// set, and the owner gets one notification, without a status, with the last 512
// bytes of output.
func (f *Fake) Stall() {
	f.t.Helper()
	if err := f.Update(func(s task.State) task.State { s.Stalled = true; return s }); err != nil {
		f.t.Errorf("tasktest: Stall of %s: %v", f.ID(), err)
	}
	tail, err := f.Output().Tail(512)
	if err != nil {
		f.t.Errorf("tasktest: Stall of %s: %v", f.ID(), err)
	}
	summary := fmt.Sprintf("Background task \"%s\" seems to wait for input", f.State().Description)
	f.Notify(notify.Notification{Source: notify.BackgroundTask, Summary: summary, Result: string(tail.Bytes)})
}

// End ends the task. The test fails if it has ended already, or if the status of
// res is not terminal.
func (f *Fake) End(res task.Result) {
	f.t.Helper()
	if err := f.Finish(res); err != nil {
		f.t.Errorf("tasktest: End of %s: %v", f.ID(), err)
	}
}
