package notify

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// ErrStale is the answer of a lease that is no longer open: it was returned
// before it was committed or the other way round, or the queue has leased
// again since.
var ErrStale = errors.New("notify: lease no longer open")

// A Lease is what a [Queue] has handed out for one call to the model. Commit it
// when the call has succeeded, return it when it has not.
//
// Its content never changes. Its methods may be called from any goroutine.
// The zero Lease is empty, and committing or returning it does nothing.
type Lease struct {
	queue *Queue
	upTo  int      // the level it was taken up to
	taken []*entry // in order of arrival
	extra []Notification
	state leaseState // guarded by queue.mu
}

type leaseState int

const (
	open leaseState = iota
	committed
	returned
	stale
)

// Empty reports whether there is nothing to tell.
func (l *Lease) Empty() bool { return len(l.taken)+len(l.extra) == 0 }

// Notifications returns what the queue gave, in order of arrival, and then the
// extras. The caller may change the slice.
func (l *Lease) Notifications() []Notification {
	ns := make([]Notification, 0, len(l.taken)+len(l.extra))
	for n := range l.all() {
		ns = append(ns, *n)
	}
	return ns
}

// all yields what the lease holds, in order, without copying it.
func (l *Lease) all() iter.Seq[*Notification] {
	return func(yield func(*Notification) bool) {
		for _, e := range l.taken {
			if !yield(&e.Notification) {
				return
			}
		}
		for i := range l.extra {
			if !yield(&l.extra[i]) {
				return
			}
		}
	}
}

// Text returns the envelopes of all notifications, one after the other, or ""
// if the lease is empty. [Parse] reads it back.
func (l *Lease) Text() string {
	var b []byte
	for n := range l.all() {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = appendEnvelope(b, n)
	}
	return string(b)
}

// agreeing returns a copy of extra without those that call a task running which
// has ended by what is taken or by another extra.
func agreeing(taken []*entry, extra []Notification) []Notification {
	extra = slices.Clone(extra)
	if !slices.ContainsFunc(extra, func(n Notification) bool { return n.running() }) {
		return extra
	}
	ended := make(map[string]bool)
	l := Lease{taken: taken, extra: extra}
	for n := range l.all() {
		if n.isEnd() {
			ended[n.TaskID] = true
		}
	}
	return slices.DeleteFunc(extra, func(n Notification) bool { return n.running() && ended[n.TaskID] })
}

// Commit records that the model was told: the notifications leave the queue for
// good and each one's Told is called, also the extras' and that of one retracted
// meanwhile. It returns the errors of those calls, joined; the lease is
// committed all the same.
//
// A second Commit returns nil and does nothing. Commit returns [ErrStale], and
// does nothing, if the lease was returned or another one was taken since.
func (l *Lease) Commit() error {
	if l.queue == nil {
		return nil
	}
	l.queue.mu.Lock()
	was := l.state
	if was == open {
		l.commitLocked()
	}
	l.queue.mu.Unlock()

	switch was {
	case open:
		return l.tell()
	case committed:
		return nil
	}
	return ErrStale
}

// Return puts back what came from the queue, in the same order and before what
// came since, without what was retracted meanwhile. The extras are dropped.
//
// A second Return returns nil and does nothing. Return returns [ErrStale], and
// does nothing, if the lease was committed or another one was taken since; so
// it may be deferred.
func (l *Lease) Return() error {
	if l.queue == nil {
		return nil
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	switch l.state {
	case open:
		l.putBackLocked(returned)
		return nil
	case returned:
		return nil
	}
	return ErrStale
}

// commitLocked makes the queue forget what is on lease.
func (l *Lease) commitLocked() {
	q := l.queue
	l.state, q.lease = committed, nil
	for _, e := range l.taken {
		q.forgetLocked(e)
	}
	if len(q.held) == 0 && len(l.taken) > 1<<14 {
		q.held = nil // a map keeps the size it once had
	}
}

// putBackLocked makes what is on lease pending again, before what was pushed
// since, and leaves the lease in the given state.
func (l *Lease) putBackLocked(s leaseState) {
	q := l.queue
	l.state, q.lease = s, nil
	if len(l.taken) == 0 {
		return
	}
	since := q.takeLocked(l.upTo)
	for _, e := range l.taken {
		e.leased = false
		switch {
		case e.retracted:
			q.forgetLocked(e)
		case q.heir != nil:
			q.forwardLocked(e)
		default:
			q.appendLocked(e)
		}
	}
	for _, e := range since {
		q.foldLocked(e)
		q.appendLocked(e)
	}
}

// tell calls the Told of everything on the lease.
func (l *Lease) tell() error {
	var errs []error
	for n := range l.all() {
		if n.Told == nil {
			continue
		}
		if err := n.Told(); err != nil {
			errs = append(errs, fmt.Errorf("notify: tell %q: %w", n.ID, err))
		}
	}
	return errors.Join(errs...)
}
