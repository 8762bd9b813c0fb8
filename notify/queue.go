package notify

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
)

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
	parent *Queue // set by Hub.Open before the queue is shared, else nil

	mu      sync.Mutex        // guards the fields below; taken before the parent's
	held    map[string]*entry // pending or on lease, by ID
	pending [2]list           // Next and Later
	seq     uint64            // of the last push
	notices int               // pending entries that may fold
	latest  map[stream]*entry // the last pending of them, for each stream
	lease   *Lease            // the open one, or nil
	arrived [2]chan struct{}  // closed when Next, or anything, arrives; nil while nobody waits
	closed  bool              // mail goes to the parent
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
	if q.closed {
		q.parent.Push(*n)
		return
	}
	if q.held == nil {
		q.held = make(map[string]*entry)
	}
	q.seq++
	e := &entry{Notification: *n, level: level(n.priority()), seq: q.seq}
	if e.ID == "" {
		e.ID = rand.Text()
	}
	q.held[e.ID] = e
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
		return q.closed && q.parent.Retract(id)
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
// Lease would take it over. Wait takes nothing itself.
//
// A queued notification wins over a context that has already ended: whoever is
// shutting down still learns what arrived before that.
func (q *Queue) Wait(ctx context.Context, p Priority) error {
	for {
		arrived := q.nextArrival(level(p))
		if arrived == nil {
			return nil
		}
		select {
		case <-arrived:
			// Another goroutine may take or withdraw it before we look; go round.
		case <-ctx.Done():
			if q.nextArrival(level(p)) == nil {
				return nil
			}
			return ctx.Err()
		}
	}
}

// nextArrival returns nil if a lease up to the given level would take
// something, else a channel that is closed when that may have changed.
func (q *Queue) nextArrival(upTo int) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.readyLocked(upTo) {
		return nil
	}
	if q.arrived[upTo] == nil {
		q.arrived[upTo] = make(chan struct{})
	}
	return q.arrived[upTo]
}

// readyLocked reports whether a lease up to the given level would take
// something.
func (q *Queue) readyLocked(upTo int) bool {
	for i := range upTo + 1 {
		if q.pending[i].n > 0 {
			return true
		}
	}
	if q.lease == nil || q.closed {
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
	l := &Lease{queue: q, upTo: level(p), extra: slices.Clone(extra)}
	l.taken = q.takeLocked(l.upTo)
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
	delete(q.held, e.ID)
	if e.folds() {
		q.notices--
	}
}

// close sends what is pending, and all that comes later, to the parent. Twice
// is once.
func (q *Queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, e := range q.takeLocked(level(Later)) {
		q.forwardLocked(e)
	}
}

// forwardLocked moves e, which is neither pending nor on lease, to the parent.
// The lock stays held meanwhile, so that nothing is ever in neither queue.
func (q *Queue) forwardLocked(e *entry) {
	delete(q.held, e.ID)
	q.parent.Push(e.Notification)
}

func (q *Queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// endsAtRoot reports whether what is pushed into q lands in the root's queue.
func (q *Queue) endsAtRoot() bool {
	return q.parent == nil || q.isClosed() && q.parent.endsAtRoot()
}

// onLease reports whether a lease with something from q is open.
func (q *Queue) onLease() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lease != nil && len(q.lease.taken) > 0
}
