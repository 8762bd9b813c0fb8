package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
)

// ErrClosed is the answer of [Queue.Wait] if a [Hub] has closed the queue.
var ErrClosed = errors.New("notify: queue closed")

// A Sink takes notifications in. [Queue] and [Hub] are sinks.
// Its methods may be called from any goroutine.
type Sink interface {
	// Push hands a notification over. What a harness may rely on:
	//
	//   - Push returns at once, whether or not anyone reads.
	//   - Every notification arrives once, in the order of the pushes.
	//   - A push whose ID is pending or on lease is ignored.
	//   - A notification with an empty ID gets one of its own.
	//   - Pushes from many goroutines arrive each once.
	Push(n Notification)

	// Retract withdraws the notification with the given ID.
	//
	//   - Retract of a pending one withdraws it, leaves the others in order
	//     and returns true.
	//   - Retract of one on lease returns true; it does not come again when
	//     the lease is returned, or replaced by another.
	//   - Retract of an ID that is neither pending nor on lease returns false.
	Retract(id string) bool
}

var (
	_ Sink = (*Queue)(nil)
	_ Sink = (*Hub)(nil)
)

// A Queue holds notifications until a lease of them is committed.
//
//   - A lease takes all that is pending up to a priority, in order of arrival.
//   - Return puts it back in the same order, before what came since.
//   - Commit removes it for good, and its IDs may be used again.
//   - One lease is open at a time: a second puts the first one back.
//   - Wait wakes when there is something to lease.
//
// Its methods may be called from any goroutine.
// The zero Queue is empty and ready to use.
type Queue struct {
	hub *Hub // set by Hub.Open before the queue is shared, else nil

	mu      sync.Mutex        // guards the fields below; taken before the heir's
	held    map[string]*entry // pending or on lease, by ID
	pending [2]list           // Next and Later
	seq     uint64            // of the last push
	notices int               // pending entries that may fold
	latest  map[stream]*entry // the last pending of them, for each stream
	lease   *Lease            // the open one, or nil
	arrived [2]chan struct{}  // closed when Next, or anything, arrives; nil while nobody waits
	heir    *Queue            // once closed, where mail goes; an older queue, so locks form no cycle
}

// Push adds n at the end, or does nothing if its ID is pending or on lease.
// It never blocks.
func (q *Queue) Push(n Notification) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pushLocked(&n)
}

// pushLocked pushes a copy of n.
func (q *Queue) pushLocked(n *Notification) {
	if q.held[n.ID] != nil {
		return
	}
	if q.heir != nil {
		q.heir.Push(*n)
		return
	}
	q.seq++
	e := &entry{Notification: *n, level: level(n.priority()), seq: q.seq}
	if e.ID == "" {
		e.ID = rand.Text()
	}
	q.holdLocked(e)
	q.foldLocked(e)
	q.appendLocked(e)
	q.wakeLocked(e.level)
}

// Retract withdraws the notification with the given ID. If it is pending it is
// gone; if it is on lease it does not come again when that lease is returned
// or replaced, and is told all the same if the lease is committed.
// Retract reports whether it was pending or on lease.
func (q *Queue) Retract(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.held[id]
	switch {
	case e == nil:
		return q.heir != nil && q.heir.Retract(id)
	case e.leased:
		e.retracted = true
	default:
		q.removeLocked(e)
		q.relatestLocked(e)
	}
	return true
}

// Lease takes what is pending up to and including priority p, in order of
// arrival, and holds it until the lease is committed or returned. The extras,
// which the queue neither holds nor takes back, follow at the end whatever
// their priority. The result is never nil.
//
// A lease does not contradict itself. If it says that a task has ended (by a
// status, from [BackgroundTask]), extras that speak of the task as running are
// left out, and their Told is not called: those from BackgroundTask or
// [Progress] that name the task and no status.
//
// A lease that is still open is first put back, and is stale from then on.
func (q *Queue) Lease(p Priority, extra ...Notification) *Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.leaseLocked(p, extra)
}

// Drain is [Queue.Lease] and [Lease.Commit] in one. The notifications count as
// told, and are returned, whatever the error.
func (q *Queue) Drain(p Priority) ([]Notification, error) {
	q.mu.Lock()
	l := q.leaseLocked(p, nil)
	l.commitLocked()
	q.mu.Unlock()
	return l.Notifications(), l.tell()
}

// Wait blocks until Lease(p) would take something, and returns nil; it returns
// ctx.Err() if ctx ends first. What an open lease holds counts, since another
// Lease would put it back. Wait takes nothing itself.
//
// If a hub has closed the queue and no open lease holds anything for p, Wait
// returns [ErrClosed] at once: nothing will come any more.
//
// A queued notification and the end of the queue win over a context that has
// already ended: whoever is shutting down still learns what arrived before that.
func (q *Queue) Wait(ctx context.Context, p Priority) error {
	for {
		arrived, err := q.nextArrival(level(p))
		if arrived == nil {
			return err
		}
		select {
		case <-arrived:
			// Another goroutine may take or withdraw it before we look; go round.
		case <-ctx.Done():
			if arrived, err := q.nextArrival(level(p)); arrived == nil {
				return err
			}
			return ctx.Err()
		}
	}
}

// nextArrival returns the answer of a Wait up to the given level or, if it has
// to block, a channel that is closed when that may have changed.
func (q *Queue) nextArrival(upTo int) (<-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.readyLocked(upTo):
		return nil, nil
	case q.heir != nil:
		return nil, ErrClosed
	}
	if q.arrived[upTo] == nil {
		q.arrived[upTo] = make(chan struct{})
	}
	return q.arrived[upTo], nil
}

// readyLocked reports whether something up to the given level is pending or
// would be if the open lease were put back.
func (q *Queue) readyLocked(upTo int) bool {
	for i := range upTo + 1 {
		if q.pending[i].n > 0 {
			return true
		}
	}
	if q.lease == nil {
		return false
	}
	for _, e := range q.lease.taken {
		if e.level <= upTo && !e.retracted {
			return true
		}
	}
	return false
}

// wakeLocked wakes those who wait for an entry of the given level.
func (q *Queue) wakeLocked(lvl int) {
	for i := lvl; i < len(q.arrived); i++ {
		if q.arrived[i] != nil {
			close(q.arrived[i])
			q.arrived[i] = nil
		}
	}
}

func (q *Queue) leaseLocked(p Priority, extra []Notification) *Lease {
	if q.lease != nil {
		q.lease.putBackLocked(stale)
	}
	l := &Lease{queue: q, upTo: level(p)}
	l.taken = q.takeLocked(l.upTo)
	l.extra = agreeing(l.taken, extra)
	for _, e := range l.taken {
		e.leased = true
	}
	q.lease = l
	return l
}

// takeLocked removes and returns what is pending up to the given level, oldest
// first. The entries remain held.
func (q *Queue) takeLocked(upTo int) []*entry {
	var n int
	var first [len(q.pending)]*entry // not yet taken, of each list
	for i := range upTo + 1 {
		n += q.pending[i].n
		first[i], q.pending[i] = q.pending[i].first, list{}
	}
	taken := make([]*entry, 0, n)
	for range n {
		from := 0
		if first[0] == nil || first[1] != nil && first[1].seq < first[0].seq {
			from = 1
		}
		e := first[from]
		first[from] = e.next
		e.prev, e.next = nil, nil
		if e.folds() {
			q.notices--
			delete(q.latest, e.stream())
		}
		taken = append(taken, e)
	}
	return taken
}

// appendLocked makes e, which is held already, the last of what is pending.
func (q *Queue) appendLocked(e *entry) {
	q.pending[e.level].append(e)
	if !e.folds() {
		return
	}
	if q.latest == nil {
		q.latest = make(map[stream]*entry)
	}
	q.latest[e.stream()] = e
	q.notices++
}

// removeLocked forgets e, which is pending. If it may be the latest of its
// stream, the caller sets another.
func (q *Queue) removeLocked(e *entry) {
	q.pending[e.level].remove(e)
	q.forgetLocked(e)
	if e.folds() {
		q.notices--
	}
}

// holdLocked notes that e is in the queue, pending or on lease.
func (q *Queue) holdLocked(e *entry) {
	if q.held == nil {
		q.held = make(map[string]*entry)
	}
	q.held[e.ID] = e
	if len(q.held) == 1 && q.hub != nil {
		q.hub.setHolding(q, true)
	}
}

// forgetLocked undoes holdLocked.
func (q *Queue) forgetLocked(e *entry) {
	delete(q.held, e.ID)
	if len(q.held) == 0 && q.hub != nil {
		q.hub.setHolding(q, false)
	}
}

// close sends what is pending, and all that comes later, to heir, which was
// opened before q.
func (q *Queue) close(heir *Queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.heir = heir
	for _, e := range q.takeLocked(level(Later)) {
		q.forwardLocked(e)
	}
	q.wakeLocked(level(Next))
}

// forwardLocked moves e, which is neither pending nor on lease, to the heir. It
// is held by both for a moment, so that Hub.Retract finds it whenever it looks.
func (q *Queue) forwardLocked(e *entry) {
	q.heir.Push(e.Notification)
	q.forgetLocked(e)
}
