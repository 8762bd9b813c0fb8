package task

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/output"
)

// A Handle is a task in a [Registry]. It stays good after the task has ended and
// been evicted; the output cannot be read any more then. Its methods may be called
// from any goroutine.
type Handle struct {
	r *Registry
	e *entry
}

var _ Task = (*Handle)(nil)

// ID returns the task's id.
func (h *Handle) ID() ID { return h.e.id }

// State returns the task's state at this moment.
func (h *Handle) State() State { return h.current().State() }

// Output returns what the task prints.
func (h *Handle) Output() *output.TaskOutput { return h.e.out }

// ClaimNotification records that the end has been announced by the caller; see
// [StateBase.ClaimNotification].
func (h *Handle) ClaimNotification() bool { return h.current().ClaimNotification() }

func (h *Handle) current() *StateBase {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	return h.e.base
}

// Start says that t is at work: the task is running, and Kill goes to t. If t
// embeds a [StateBase], that one becomes the task's own.
//
// If the task has been killed meanwhile, Start returns ErrEnded, and the caller
// ends t. Starting a second time is an error. It panics if t is nil.
func (h *Handle) Start(t Task) error {
	if t == nil {
		panic("task: Handle.Start called with a nil Task")
	}
	if err := h.start(t); err != nil {
		return err
	}
	h.r.persist(h.e, recStarted)
	return nil
}

func (h *Handle) start(t Task) error {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	switch status, reason := h.e.base.standing(); {
	case status.Terminal(), status == Pending && reason != "": // a kill has found no Task: it ends by that
		return ErrEnded
	case status != Pending:
		return fmt.Errorf("task: %s has been started already", h.e.id)
	}
	if own, ok := t.(interface{ base() *StateBase }); ok {
		if !own.base().takeOver(h.e.base) {
			return fmt.Errorf("task: the StateBase given for %s serves another run", h.e.id)
		}
		h.e.base = own.base()
	}
	h.e.task = t
	h.e.base.change(func(s *State) { s.Status, s.Started = Running, time.Now() })
	h.r.emitLocked(h.e)
	return nil
}

// Update changes the state as f says: f gets the state and returns it changed.
// It may be called more than once if others change the state meanwhile, and
// must not have effects of its own. Nothing happens if f changes nothing.
//
// Description, Command, Stalled, WaitingForInput, Backgrounded, Descendants and
// Data may be changed. Any other change, such as one of the status, the latch or
// a time, is an error and changes nothing.
func (h *Handle) Update(f func(State) State) error {
	for {
		base := h.current()
		base.mu.Lock()
		rev := base.rev
		base.mu.Unlock()
		old := base.State()

		changed := f(old.clone())
		if reflect.DeepEqual(changed, old) {
			return nil
		}
		if !reflect.DeepEqual(withFree(old, changed), changed) {
			return fmt.Errorf("task: Update of %s changes what only the registry may", h.e.id)
		}
		if err := checkData(changed.Data); err != nil {
			return err
		}
		if h.swap(base, rev, changed.clone()) {
			if changed.Status != Pending { // the record of the start has it
				h.r.persist(h.e, recState)
			}
			return nil
		}
	}
}

// withFree returns s with the fields that Update may change taken from t.
func withFree(s, t State) State {
	s.Description, s.Command, s.Data = t.Description, t.Command, t.Data
	s.Stalled, s.WaitingForInput, s.Backgrounded = t.Stalled, t.WaitingForInput, t.Backgrounded
	s.Descendants = t.Descendants
	return s
}

// swap stores what Update may change of s, unless the state is no longer at rev.
func (h *Handle) swap(base *StateBase, rev uint64, s State) bool {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	if base != h.e.base || !base.changeAt(rev, func(old *State) { *old = withFree(*old, s) }) {
		return false
	}
	h.r.emitLocked(h.e)
	return true
}

// Wait returns the final state once the end has been announced, and ctx.Err()
// with the state of that moment if ctx ends first. If both have happened, the
// end wins. Wait takes nothing: the notification goes its way.
func (h *Handle) Wait(ctx context.Context) (State, error) {
	if h.e.ended() {
		return h.State(), nil
	}
	select {
	case <-h.e.done:
		return h.State(), nil
	case <-ctx.Done():
		return h.State(), ctx.Err()
	}
}

// Take waits like [Handle.Wait] and takes the result: the caller tells the
// model, and the registry does not. A notification that is in the queue already
// is withdrawn; one on lease is not returned to the queue. If ctx ends first,
// nothing has been taken. Taking twice gives the same state again.
//
// A caller that starts the task and wants the result whatever happens asks for
// a [Handle.Taker] before it calls Start.
func (h *Handle) Take(ctx context.Context) (State, error) { return h.Taker().Take(ctx) }

// A Taker has asked for a task's result before the task has ended, so that the
// registry announces nothing.
type Taker struct{ h *Handle }

// Taker registers a taker. It must be followed by [Taker.Take]: until then a
// task that ends is announced to nobody.
func (h *Handle) Taker() *Taker {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	h.e.takers++
	return &Taker{h: h}
}

// Take returns the final state, taken. If ctx ends first it gives up the claim
// and returns ctx.Err(): the end will be announced. If both have happened, the
// result wins. It is called once.
func (t *Taker) Take(ctx context.Context) (State, error) {
	h := t.h
	if st, err := h.Wait(ctx); err != nil && !t.tooLate() {
		return st, err
	}
	<-h.e.done // the end is being announced, to us
	h.r.mu.Lock()
	pushed := h.e.pushed
	h.r.mu.Unlock()
	if pushed {
		h.r.cfg.Notify.Retract(h.e.endID())
	}
	h.r.markTold(h.e) // Close says if it is not on record
	return h.State(), nil
}

// tooLate gives up the taker's claim. It reports that it could not, because the
// end has been settled with it.
func (t *Taker) tooLate() bool {
	t.h.r.mu.Lock()
	defer t.h.r.mu.Unlock()
	if t.h.e.settled {
		return true
	}
	t.h.e.takers--
	return false
}

// WaitFor returns the first line of output that re matches, from the beginning
// of the output, without its line end. A line is looked at when it is complete,
// the last one when the task has ended. Of a line longer than 64 KiB each 64 KiB
// count as a line.
//
// It returns ErrEnded if the task ends without such a line, and ctx.Err() if
// ctx ends first.
func (h *Handle) WaitFor(ctx context.Context, re *regexp.Regexp) (string, error) {
	lines := bufio.NewReaderSize(&untilEnd{ctx: ctx, e: h.e}, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if text := strings.TrimRight(string(line), "\r\n"); len(line) > 0 && re.MatchString(text) {
			return text, nil
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return "", ErrEnded
		default:
			return "", err
		}
	}
}

// An untilEnd reads a task's output from its beginning and ends with the task:
// what a process that the task left goes on printing is not waited for.
type untilEnd struct {
	ctx context.Context // of the call that reads
	e   *entry
	off int64
}

func (r *untilEnd) Read(p []byte) (int, error) {
	for {
		ended := r.e.ended() // asked first: all that was printed before the end is read
		n, err := r.e.out.ReadAt(p, r.off)
		r.off += int64(n)
		switch {
		case n > 0:
			return n, nil
		case err != io.EOF, ended:
			return 0, err
		}
		more := r.e.out.More(r.off)
		if r.e.out.Stat().Ended {
			more = nil // ready for ever, with nothing to read
			if _, err := r.e.out.ReadAt(p[:1], r.off); err != io.EOF {
				continue // what came last
			}
		}
		select {
		case <-more:
		case <-r.e.done:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
}

// ended reports whether the end has been announced.
func (e *entry) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// Notify tells the task's owner something that is not its end, such as a stall,
// how far it has got, or a line that it watches for. The registry fills in the
// id, the task, whom it is for, and the time if there is none; Source, Summary,
// Result, Priority and Told are the caller's. A status is not sent: the end has
// one. Notify does nothing after the end.
func (h *Handle) Notify(n notify.Notification) {
	r, e := h.r, h.e
	r.mu.Lock()
	st := e.base.State()
	e.notices++
	about := e.notification(st)
	n.ID = fmt.Sprintf("%s.%d#%d", e.id, st.Run, e.notices)
	r.mu.Unlock()
	if st.Status.Terminal() || r.cfg.Notify == nil {
		return
	}
	n.TaskID, n.ToolUseID, n.OutputFile, n.To = about.TaskID, about.ToolUseID, about.OutputFile, about.To
	n.Status = ""
	if n.Time.IsZero() {
		n.Time = time.Now()
	}
	r.cfg.Notify.Push(n)
	if h.current().status().Terminal() {
		r.cfg.Notify.Retract(n.ID) // it may stand behind the end
	}
}
