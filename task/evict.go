package task

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// evictEvery is how often the registry looks for told tasks whose time is over.
const evictEvery = time.Second

// Evict forgets the task with that id at once, and its output in memory. A file
// that the output has stays: until Close, or in a session until that is swept. It
// returns ErrInUse if the task has not
// ended, has not been told or taken, or has left processes that live. An id that
// is not there, as after a first Evict, is nil.
func (r *Registry) Evict(ctx context.Context, id ID) error {
	h, err := r.Get(ctx, id)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	free := h.e.freeLocked()
	if free {
		delete(r.tasks, id)
		h.e.evicted = true
	}
	r.mu.Unlock()
	if !free {
		return fmt.Errorf("%w: %s", ErrInUse, id)
	}
	return r.forget(h.e)
}

// forget lets go of what is left of a task that is known no more.
func (r *Registry) forget(e *entry) error {
	return errors.Join(r.persist(e, recEvicted), e.out.Close())
}

// freeLocked reports whether nobody needs the task any more.
func (e *entry) freeLocked() bool { return !e.told.IsZero() && !e.leftLocked() }

// evictDue forgets the tasks that have been told for longer than their type is
// kept.
func (r *Registry) evictDue(now time.Time) {
	var due []*entry
	r.mu.Lock()
	if now.Sub(r.swept) >= evictEvery {
		r.swept = now
		for id, e := range r.tasks {
			if e.freeLocked() && now.Sub(e.told) >= r.retention(e.typ) {
				delete(r.tasks, id)
				e.evicted = true
				due = append(due, e)
			}
		}
	}
	r.mu.Unlock()
	for _, e := range due {
		r.forget(e) // Close says what could not be recorded
	}
}

func (r *Registry) retention(t Type) time.Duration {
	if d, ok := r.cfg.Retention[t]; ok {
		return d
	}
	if t == LocalAgent {
		return agentRetention
	}
	return DefaultRetention
}
