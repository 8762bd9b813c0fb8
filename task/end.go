package task

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/afoot-go/afoot/internal/text"
	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/output"
)

// ResultLimit is the number of characters of output, or of a task's own result,
// in a notification.
const ResultLimit = 2_000

// A Result is how a run ended.
type Result struct {
	Status  Status    // Completed, Failed or Killed
	Reason  EndReason // empty: Exited, or why it was being killed
	Exit    *Exit     // of its process, if it had one
	Error   string    // what went wrong, if something did
	Summary string    // one line for the model; empty: one made from the description
	Text    string    // what the task hands back, such as an agent's answer

	// Descendants are the processes that live on. The task is kept, and Kill
	// still reaches it, until they are gone.
	Descendants []int

	// OutputOpen says that the output may still grow. Otherwise Finish ends it.
	OutputOpen bool
}

// Finish ends the run. The first call decides: it sets the terminal state,
// announces the end as the package documentation says, and returns nil. Any
// later one changes nothing and returns ErrEnded. A result whose status is not
// terminal is an error and changes nothing.
func (h *Handle) Finish(res Result) error {
	if !res.Status.Terminal() {
		return fmt.Errorf("task: Finish of %s with status %s", h.e.id, res.Status)
	}
	return h.r.end(h.e, res)
}

// end is the one way to the end of a run: terminal state, journal, latch, push,
// waiters, in that order. A state that says it has ended is final, and whoever
// has been told or woken finds it so; and what anybody was told is on record.
func (r *Registry) end(e *entry, res Result) error {
	if !r.setEnded(e, res) {
		return ErrEnded
	}
	if !res.OutputOpen {
		e.out.End()
	}
	r.persist(e, recEnd)
	r.announce(e)
	return nil
}

// announce tells of an end that is on record.
func (r *Registry) announce(e *entry) {
	switch r.claimEnd(e) {
	case toSink:
		r.cfg.Notify.Push(r.endNotification(e))
	case byHand:
		r.markTold(e) // Close says if it is not on record
	case toTaker: // Take says when it is told
	}
	close(e.done)
	r.settledOne()
}

// setEnded sets the terminal state, if there is none yet.
func (r *Registry) setEnded(e *entry, res Result) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.base.status().Terminal() {
		return false
	}
	e.base.change(func(s *State) {
		s.Status, s.Ended = res.Status, time.Now()
		s.Exit, s.Error, s.Descendants = res.Exit, res.Error, res.Descendants
		s.Result = text.Clip(res.Text, ResultLimit)
		s.Reason = endReason(s.Reason, res)
		if s.Status != Killed {
			s.KilledBy = Root
		}
		s.Stalled, s.WaitingForInput = false, false
		if s.Summary = res.Summary; s.Summary == "" {
			s.Summary = summary(s, e.out.Stat())
		}
	})
	r.releaseLocked(e.typ)
	r.emitLocked(e)
	return true
}

// endReason returns why a run ended that was asked to for the reason asked.
func endReason(asked EndReason, res Result) EndReason {
	switch {
	case res.Reason != "":
		return res.Reason
	case res.Status != Killed:
		return Exited
	}
	return cmp.Or(asked, Requested)
}

// summary words the end of a task whose kind has not.
func summary(s *State, out output.Stat) string {
	end := `Background task "` + s.Name() + `" ` + s.Status.String()
	switch {
	case s.Status == Killed:
		end += " (" + string(s.Reason) + ")"
	case s.Error != "":
		end += ": " + s.Error
	}
	if out.Dropped > 0 {
		end += fmt.Sprintf("; %d bytes of output were not kept", out.Dropped)
	}
	return end
}

// Who tells of an end.
const (
	byHand  = iota // whoever claimed the latch before, or nobody: there is no sink
	toTaker        // whoever takes the result
	toSink         // the queue
)

// claimEnd claims the latch and says who tells of the end.
func (r *Registry) claimEnd(e *entry) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.settled = true
	switch claimed := e.base.ClaimNotification(); {
	case claimed && e.takers > 0:
		return toTaker
	case claimed && r.cfg.Notify != nil:
		e.pushed = true
		return toSink
	}
	return byHand
}

// endID is the id of the notification of the end.
func (e *entry) endID() string { return string(e.id) + "." + strconv.Itoa(e.run) }

// endNotification is what the model is told of the end. Where there is no file
// to read, or where the end went wrong, it carries the output itself.
func (r *Registry) endNotification(e *entry) notify.Notification {
	st := e.handle.State()
	n := e.notification(st)
	n.ID = e.endID()
	n.Status, n.Summary, n.Time, n.Priority = st.Status.String(), st.Summary, st.Ended, st.Priority
	n.Told = func() error { return r.markTold(e) }
	switch {
	case st.Result != "":
		n.Result = st.Result
	case st.OutputSize > 0 && (n.OutputFile == "" || st.Status != Completed):
		v, err := e.out.View(0, ResultLimit)
		if n.Result = v.Text; err != nil {
			n.Result = "The output cannot be read: " + err.Error()
		}
	}
	return n
}

// notification returns what all notifications of a task have in common.
func (e *entry) notification(st State) notify.Notification {
	return notify.Notification{
		Source: notify.BackgroundTask, TaskID: string(e.id), ToolUseID: st.ToolUseID,
		OutputFile: st.OutputFile, To: st.Owner,
	}
}

// markTold records that the model knows of the end.
func (r *Registry) markTold(e *entry) error {
	r.mu.Lock()
	first := e.told.IsZero()
	if first {
		e.told = time.Now()
	}
	r.mu.Unlock()
	if !first {
		return nil
	}
	return r.persist(e, recTold)
}

// Kill ends the task and waits until it is gone, whole. Killing a task that has
// ended ends the processes it left, if there are any, and returns nil. If ctx
// ends first, Kill returns ctx.Err(), the ending goes on in the background, and
// Kill may be called again. What the kind could not end is in its error.
func (h *Handle) Kill(ctx context.Context) error { return h.KillFor(ctx, Requested) }

// KillFor is Kill for a reason other than that somebody asked for it. The first
// reason stays.
func (h *Handle) KillFor(ctx context.Context, why EndReason) error {
	r, e := h.r, h.e
	t := r.askToEnd(e, why, OwnerOf(ctx))
	if t != nil {
		if err := t.Kill(ctx); err != nil {
			return err
		}
	}
	// A task that reports its own end has done so by now.
	if r.end(e, Result{Status: Killed}) != nil {
		r.forgetDescendants(e)
	}
	_, err := h.Wait(ctx)
	return err
}

// askToEnd records why a run is being killed and returns its Task, which is nil
// before Start. A task that was never started ends by that alone.
func (r *Registry) askToEnd(e *entry, why EndReason, by Owner) Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := false
	e.base.change(func(s *State) {
		if !s.Status.Terminal() && s.Reason == "" {
			s.Reason, s.KilledBy, asked = why, by, true
		}
	})
	if asked {
		r.emitLocked(e)
	}
	return e.task
}

func (r *Registry) forgetDescendants(e *entry) {
	r.mu.Lock()
	gone := false
	e.base.change(func(s *State) { gone, s.Descendants = len(s.Descendants) > 0, nil })
	if gone {
		r.emitLocked(e)
	}
	r.mu.Unlock()
	if gone {
		r.persist(e, recState)
	}
}

// outputFull kills a task that prints more than it may. The writer that found
// out must not wait for that: the kill may wait for it.
func (r *Registry) outputFull(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() == nil {
		r.work.Go(func() { e.handle.KillFor(r.life, OutputLimit) })
	}
}

// Kill kills the task with that id as [Handle.Kill] does and returns its final
// state: of a task that had ended before, the state it had then. If ctx ends
// first, the state is that of the moment.
func (r *Registry) Kill(ctx context.Context, id ID) (State, error) {
	h, err := r.Get(ctx, id)
	if err != nil {
		return State{}, err
	}
	err = h.Kill(ctx)
	return h.State(), err
}

// KillOwned kills every task of owner and of the owners below it, each as
// [Handle.Kill] does, all at once, for the reason OwnerGone. The root's are all
// there are. It joins the errors.
func (r *Registry) KillOwned(ctx context.Context, owner Owner) error {
	_, err := r.killAll(ctx, OwnerGone, func(e *entry) bool { return r.family.within(e.ownerLocked(), owner) })
	return err
}
