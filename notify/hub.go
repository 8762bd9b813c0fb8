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
// Its methods may be called from any goroutine.
// The zero Hub is ready to use; the root's queue is always open.
type Hub struct {
	root Queue

	mu     sync.Mutex       // guards the fields below; taken before any queue's
	queues map[Owner]*Queue // open, or closed and not yet forgotten; without the root's
	former []*Queue         // closed, with a lease still open, of owners opened anew since
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
	old := h.queues[owner]
	if old != nil && !old.isClosed() {
		return nil, fmt.Errorf("notify: owner %q already open", owner)
	}
	heir := h.findLocked(parent)
	if heir == nil || heir.isClosed() {
		return nil, fmt.Errorf("notify: parent %q of owner %q not open", parent, owner)
	}
	if old != nil {
		h.former = append(h.former, old)
	}
	if h.queues == nil {
		h.queues = make(map[Owner]*Queue)
	}
	q := &Queue{parent: heir}
	h.queues[owner] = q
	return q, nil
}

// Close ends the queue of owner. What is pending in it goes to its parent's
// queue, in order, and so does what comes later: by the hub, by the queue
// itself, or back from a lease that is still open. Closing the root, an unknown
// owner or one already closed does nothing.
func (h *Hub) Close(owner Owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q := h.queues[owner]; q != nil {
		q.close()
		h.forgetLocked()
	}
}

// Push adds n to the queue of its owner, by the rules of [Queue.Push].
func (h *Hub) Push(n Notification) {
	h.mu.Lock()
	q := h.findLocked(n.To)
	h.mu.Unlock()
	if q == nil {
		q = &h.root
	}
	q.Push(n)
}

// Retract withdraws the notification with the given ID from whichever queue
// has it, by the rules of [Queue.Retract].
func (h *Hub) Retract(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.root.Retract(id) {
		return true
	}
	// A closed queue looks in its parent too, so what a lease returns upwards
	// meanwhile is not missed, in whatever order we look.
	for _, q := range h.queues {
		if q.Retract(id) {
			return true
		}
	}
	return slices.ContainsFunc(h.former, func(q *Queue) bool { return q.Retract(id) })
}

// findLocked returns the queue of an owner, or nil if it is unknown.
func (h *Hub) findLocked(owner Owner) *Queue {
	if owner == Root {
		return &h.root
	}
	return h.queues[owner]
}

// forgetLocked drops the closed queues that make no difference: those that
// have nothing on lease and whose mail goes to the root, as an unknown owner's
// does.
func (h *Hub) forgetLocked() {
	maps.DeleteFunc(h.queues, func(_ Owner, q *Queue) bool {
		return q.endsAtRoot() && !q.onLease()
	})
	h.former = slices.DeleteFunc(h.former, func(q *Queue) bool { return !q.onLease() })
}
