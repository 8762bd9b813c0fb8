package task

import (
	"context"
	"errors"
	"reflect"
	"sync"
)

// WaitAll waits until all the tasks with these ids have ended, as [Handle.Wait]
// does, and returns their final states in the same order. An id that the owner
// of ctx may not see is ErrNotFound at once. If ctx ends first it returns
// ctx.Err() and the states of that moment.
func (r *Registry) WaitAll(ctx context.Context, ids ...ID) ([]State, error) {
	handles, err := r.getAll(ctx, ids)
	if err != nil {
		return nil, err
	}
	states := make([]State, len(handles))
	for i, h := range handles {
		var werr error
		if states[i], werr = h.Wait(ctx); werr != nil {
			err = werr
		}
	}
	return states, err
}

// WaitAny waits until one of the tasks with these ids has ended and returns its
// final state. Without ids it returns ErrNotFound, as for an id that the owner
// of ctx may not see, and ctx.Err() if ctx ends first.
func (r *Registry) WaitAny(ctx context.Context, ids ...ID) (State, error) {
	handles, err := r.getAll(ctx, ids)
	if err != nil {
		return State{}, err
	}
	if len(handles) == 0 {
		return State{}, ErrNotFound
	}
	cases := make([]reflect.SelectCase, len(handles), len(handles)+1)
	for i, h := range handles {
		if h.e.ended() { // wins over a ctx that has ended too
			return h.State(), nil
		}
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(h.e.done)}
	}
	if done := ctx.Done(); done != nil {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(done)})
	}
	i, _, _ := reflect.Select(cases)
	if i == len(handles) {
		return State{}, ctx.Err()
	}
	return handles[i].State(), nil
}

func (r *Registry) getAll(ctx context.Context, ids []ID) ([]*Handle, error) {
	handles := make([]*Handle, len(ids))
	for i, id := range ids {
		var err error
		if handles[i], err = r.Get(ctx, id); err != nil {
			return nil, err
		}
	}
	return handles, nil
}

// killAll kills the matching tasks that run or have left processes, all at
// once. It returns those, and the joined errors. match is called with the
// registry locked.
func (r *Registry) killAll(ctx context.Context, why EndReason, match func(*entry) bool) ([]*Handle, error) {
	handles := r.handles(func(e *entry) bool { return e.leftLocked() && match(e) })
	errs := make([]error, len(handles))
	var all sync.WaitGroup
	for i, h := range handles {
		all.Go(func() { errs[i] = h.KillFor(ctx, why) })
	}
	all.Wait()
	return handles, errors.Join(errs...)
}

// leftLocked reports whether there is something of the task to kill.
func (e *entry) leftLocked() bool {
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	return !e.base.state.Status.Terminal() || len(e.base.state.Descendants) > 0
}

// Adopt gives the tasks of owner to newOwner, who is then told of their ends,
// and may ask for them. The owners below owner go with them. Ends that are in
// owner's queue already stay there.
func (r *Registry) Adopt(owner, newOwner Owner) {
	if owner == newOwner {
		return
	}
	var adopted []*entry
	r.mu.Lock()
	for _, e := range r.tasks {
		if e.ownerLocked() == owner {
			e.base.change(func(s *State) { s.Owner = newOwner })
			r.emitLocked(e)
			adopted = append(adopted, e)
		}
	}
	r.family.move(owner, newOwner)
	r.mu.Unlock()
	for _, e := range adopted {
		r.persist(e, recState)
	}
}

// Idle reports whether owner, and every owner below it, has nothing going on:
// no task that is pending or running, and none whose end is still to be told. A
// host that is about to exit asks for the root.
func (r *Registry) Idle(owner Owner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.tasks {
		if e.told.IsZero() && r.family.within(e.ownerLocked(), owner) {
			return false
		}
	}
	return true
}
