package notify

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A Hub keeps a queue for each owner and sends every notification to the one of
// its To. An owner that was closed has its mail sent to its parent, or to the
// nearest ancestor that is still open; an unknown owner's goes to the root.
//
// A closed owner keeps no queue once what it had on lease is done with. If its
// mail goes to the root it costs nothing; if an ancestor is open it costs its
// name and some 100 bytes until that ancestor is closed or it is opened again.
//
// Its methods may be called from any goroutine.
// The zero Hub is ready to use; the root's queue is always open.
type Hub struct {
	root Queue

	mu     sync.Mutex        // guards the fields below and all branches; taken before any queue's
	open   map[Owner]*branch // without the root
	closed map[Owner]*branch // where their mail goes, unless that is the root

	holdingMu sync.Mutex          // guards the field below; taken after any other lock
	holding   map[*Queue]struct{} // those of owners, open or not, that hold something
}

// A branch is the place of an owner in the tree, for as long as it is open or
// the mail of others comes by. That of the root is nil.
type branch struct {
	queue *Queue             // nil once closed
	up    *branch            // the parent's; once closed, that of the nearest one open then
	wards map[Owner]struct{} // closed owners whose nearest open branch this is
}

// Root returns the queue of the [Root] owner. It is never closed.
func (h *Hub) Root() *Queue { return &h.root }

// Open returns a new queue for owner, whose mail goes to parent once it is
// closed. It is an error if owner is the root or open already, or if parent is
// not open. An owner that was closed may be opened again; what it left behind
// stays with its ancestors.
func (h *Hub) Open(owner, parent Owner) (*Queue, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if owner == Root {
		return nil, errors.New("notify: the root is always open")
	}
	if h.open[owner] != nil {
		return nil, fmt.Errorf("notify: owner %q already open", owner)
	}
	up := h.open[parent]
	if up == nil && parent != Root {
		return nil, fmt.Errorf("notify: parent %q of owner %q not open", parent, owner)
	}
	if heir := h.closed[owner].nearest(); heir != nil {
		delete(heir.wards, owner)
		delete(h.closed, owner)
	}
	if h.open == nil {
		h.open, h.closed = make(map[Owner]*branch), make(map[Owner]*branch)
	}
	b := &branch{queue: &Queue{hub: h}, up: up}
	h.open[owner] = b
	return b.queue, nil
}

// Close ends the queue of owner. What is pending in it goes to its parent's
// queue, in order, and so does what comes later: by the hub, by the queue
// itself, or back from a lease that is still open. Who waits for it is woken.
// Closing the root, an unknown owner or one already closed does nothing.
func (h *Hub) Close(owner Owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.open[owner]
	if b == nil {
		return
	}
	heir := b.up.nearest()
	b.queue.close(h.queueOf(heir))
	b.queue, b.up = nil, heir
	delete(h.open, owner)
	h.bequeathLocked(owner, b)
}

// bequeathLocked makes owner, whose branch b has just been closed, and the
// wards of b wards of the branch above.
func (h *Hub) bequeathLocked(owner Owner, b *branch) {
	heir, wards := b.up, b.wards
	b.wards = nil
	if heir == nil { // for the root they are like owners that it never knew
		for ward := range wards {
			delete(h.closed, ward)
		}
		return
	}
	h.closed[owner] = heir
	if len(heir.wards) < len(wards) { // the fewer move, so that no chain of owners is costly
		heir.wards, wards = wards, heir.wards
	}
	if heir.wards == nil {
		heir.wards = make(map[Owner]struct{})
	}
	maps.Copy(heir.wards, wards)
	heir.wards[owner] = struct{}{}
}

// Push adds n to the queue of its owner, by the rules of [Queue.Push].
func (h *Hub) Push(n Notification) {
	h.mu.Lock()
	b := h.open[n.To]
	if b == nil {
		b = h.closed[n.To].nearest()
	}
	q := h.queueOf(b)
	h.mu.Unlock()
	q.Push(n) // if it is closed by now, it knows where to
}

// Retract withdraws the notification with the given ID from whichever queue
// has it, by the rules of [Queue.Retract].
func (h *Hub) Retract(id string) bool {
	// What goes up meanwhile is not missed: whoever holds it now passes the
	// question on the same way. For that the list comes before the root.
	h.holdingMu.Lock()
	holding := slices.Collect(maps.Keys(h.holding))
	h.holdingMu.Unlock()
	return h.root.Retract(id) ||
		slices.ContainsFunc(holding, func(q *Queue) bool { return q.Retract(id) })
}

// setHolding notes whether q, a queue of h, holds something.
func (h *Hub) setHolding(q *Queue, holds bool) {
	h.holdingMu.Lock()
	defer h.holdingMu.Unlock()
	if !holds {
		delete(h.holding, q)
		return
	}
	if h.holding == nil {
		h.holding = make(map[*Queue]struct{})
	}
	h.holding[q] = struct{}{}
}

// queueOf returns the queue of an open branch.
func (h *Hub) queueOf(b *branch) *Queue {
	if b == nil {
		return &h.root
	}
	return b.queue
}

// nearest returns b or the first branch above it that is open.
func (b *branch) nearest() *branch {
	for b != nil && b.queue == nil {
		b = b.up
	}
	return b
}
