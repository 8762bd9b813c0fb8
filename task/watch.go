package task

import (
	"context"
	"iter"
)

// watchBuffer is the number of events kept for a watcher that does not read.
const watchBuffer = 256

// An Event is a change of one task.
type Event struct {
	State  State `json:"state"`           // after the change
	Missed int   `json:"missed,omitzero"` // events before this one that the watcher was too slow for
}

type watcher struct {
	asker  Owner
	events []Event       // guarded by Registry.mu
	closed bool          // guarded by Registry.mu
	wake   chan struct{} // holds one token when there is something to look at
}

// Watch returns the changes of the tasks that the owner of ctx may see, from
// the call on, in the order they happened. A watcher that falls more than 256
// events behind loses the oldest and is told how many. The sequence ends when
// ctx ends or the registry is closed. It can be ranged over once.
func (r *Registry) Watch(ctx context.Context) iter.Seq[Event] {
	w := &watcher{asker: OwnerOf(ctx), wake: make(chan struct{}, 1)}
	r.mu.Lock()
	r.watchers[w] = struct{}{}
	if r.unwatched {
		r.unwatchLocked(w)
	}
	r.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { r.unwatch(w) })

	return func(yield func(Event) bool) {
		defer stop()
		defer r.unwatch(w)
		for range w.wake {
			r.mu.Lock()
			events, closed := w.events, w.closed
			w.events = nil
			r.mu.Unlock()
			for _, ev := range events {
				if !yield(ev) {
					return
				}
			}
			if closed {
				return
			}
		}
	}
}

// emitLocked tells the watchers that a task has changed.
func (r *Registry) emitLocked(e *entry) {
	if len(r.watchers) == 0 {
		return
	}
	st := e.base.State()
	for w := range r.watchers {
		if !visible(w.asker, st.Owner) {
			continue
		}
		if len(w.events) == watchBuffer {
			lost := 1 + w.events[0].Missed
			w.events = w.events[1:]
			w.events[0].Missed += lost
		}
		w.events = append(w.events, Event{State: st.clone()})
		w.wakeUp()
	}
}

// wakeUp is called with the registry locked.
func (w *watcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (r *Registry) unwatch(w *watcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unwatchLocked(w)
}

func (r *Registry) unwatchLocked(w *watcher) {
	delete(r.watchers, w)
	w.closed = true
	w.wakeUp()
}

func (r *Registry) closeWatchers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unwatched = true
	for w := range r.watchers {
		r.unwatchLocked(w)
	}
}
