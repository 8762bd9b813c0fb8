package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/afoot-go/afoot/internal/fsys"
	"github.com/afoot-go/afoot/output"
)

// persist records what has become of a task, if there is somewhere to. A failure
// is returned, and by Close as well.
func (r *Registry) persist(e *entry, kind string) error {
	if e.session == nil || kind != recEvicted && r.isEvicted(e) {
		return nil
	}
	rec := journalRecord{Kind: kind, ID: e.id, Time: time.Now()}
	if kind != recTold && kind != recEvicted {
		st, rev := e.handle.current().image()
		rec.State, rec.Rev = &st, rev
	}
	return e.session.journal.append(rec)
}

func (r *Registry) isEvicted(e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.evicted
}

// openSessions opens the registry's session, and takes up the tasks of it or, if
// it has no name, those of dead hosts' sessions without one.
func (r *Registry) openSessions(ctx context.Context) error {
	base, err := openBase(r.cfg.Dir)
	if err != nil {
		return err
	}
	defer base.Close()
	s, tasks, err := openSession(base, sessionDir(r.cfg.Session), lockWait)
	var held *fsys.LockedError
	if errors.As(err, &held) {
		return fmt.Errorf("%w: %q by process %d", ErrSessionHeld, r.cfg.Session, held.PID)
	}
	if err != nil {
		return err
	}
	r.own, r.sessions = s, []*session{s}
	var names []string
	if r.cfg.Session == "" {
		if names, err = base.Names(); err != nil {
			return err
		}
	}
	r.takeUp(ctx, s, tasks) // nothing fails from here on: it tells
	for _, name := range names {
		if strings.HasPrefix(name, anonymousPrefix) {
			r.openDead(ctx, base, name)
		}
	}
	return nil
}

// openDead takes up a session whose host is dead, if it has something to tell.
// One that cannot be read is left for people to look at.
func (r *Registry) openDead(ctx context.Context, base *fsys.Dir, name string) {
	s, tasks, err := openSession(base, name, 0)
	if err != nil {
		return // held, or not ours
	}
	open := false
	for _, t := range tasks {
		open = open || t.told.IsZero()
	}
	if !open {
		s.close()
		return
	}
	r.sessions = append(r.sessions, s)
	r.takeUp(ctx, s, tasks)
}

// takeUp makes the tasks of an earlier host known, tells again what was not told,
// and asks the kinds for those that had not ended.
func (r *Registry) takeUp(ctx context.Context, s *session, tasks []*saved) {
	var ended, unfinished []*entry
	for _, t := range tasks {
		switch e := r.restore(s, t); {
		case !t.state.Status.Terminal():
			unfinished = append(unfinished, e)
		case t.told.IsZero():
			ended = append(ended, e)
		}
	}
	for _, e := range ended {
		if r.cfg.Notify != nil {
			r.cfg.Notify.Retract(e.endID()) // what an earlier registry of this program may have left in it
		}
		r.announce(e)
	}
	// A kind may have to wait for what it puts an end to.
	recovered := make([]Task, len(unfinished))
	errs := make([]error, len(unfinished))
	var all sync.WaitGroup
	for i, e := range unfinished {
		all.Go(func() { recovered[i], errs[i] = r.recover(ctx, e) })
	}
	all.Wait()
	for i, e := range unfinished {
		r.settle(e, recovered[i], errs[i])
	}
}

// restore makes a task known as the journal has it.
func (r *Registry) restore(s *session, t *saved) *entry {
	e := &entry{id: t.state.ID, run: t.state.Run, typ: t.state.Type, session: s, told: t.told, done: make(chan struct{})}
	e.handle = Handle{r: r, e: e}
	e.out = reopened(s.outputs, e.id)
	e.base, e.own.out = &e.own, e.out
	if !t.told.IsZero() && !t.state.Status.Terminal() { // its end could not be recorded, and what it was is not known
		t.state.Status, t.state.Reason, t.state.Error = Failed, HostLost, hostLost
	}
	e.own.state, e.own.rev = t.state, t.rev
	e.own.notified.Store(!t.told.IsZero())
	if t.state.Status.Terminal() {
		e.own.state.Descendants = nil // pids of an earlier host's processes say nothing now
	}
	if !t.told.IsZero() {
		e.settled = true
		close(e.done)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !t.state.Status.Terminal() {
		r.live++
		r.running[e.typ]++
	}
	r.family.add(t.state.Owner, Root)
	r.addLocked(e)
	return e
}

// reopened returns a task's output as an earlier host left it: empty if that is
// there no more.
func reopened(dir *output.Dir, id ID) *output.TaskOutput {
	out, err := output.Reopen(dir, string(id))
	if err != nil {
		out = new(output.TaskOutput)
		out.End()
	}
	return out
}

// hostLost is the error of a task whose host is lost.
const hostLost = "its host ended before it did"

// recover asks a task's kind for it.
func (r *Registry) recover(ctx context.Context, e *entry) (t Task, err error) {
	k := r.kinds[e.typ]
	if k == nil {
		return nil, ErrGone
	}
	defer func() { // the caller of Open could not: this is a goroutine
		if v := recover(); v != nil {
			t, err = nil, fmt.Errorf("its kind panicked: %v", v)
		}
	}()
	return k.Recover(ctx, &e.handle)
}

// settle goes on with a recovered task, or ends the one that is lost.
func (r *Registry) settle(e *entry, t Task, err error) {
	if err == nil && t != nil {
		r.adopt(e, t)
		return
	}
	res := Result{Status: Failed, Reason: HostLost, Error: hostLost}
	if err != nil && err != ErrGone {
		res.Error += ": " + err.Error()
	}
	r.end(e, res)
}

// adopt makes t what a recovered task is killed through, unless it has ended
// meanwhile.
func (r *Registry) adopt(e *entry, t Task) {
	r.mu.Lock()
	runs := !e.base.status().Terminal()
	e.task = t
	if runs {
		e.base.change(func(s *State) { s.Status = Running })
		r.emitLocked(e)
	}
	r.mu.Unlock()
	if runs {
		r.persist(e, recStarted)
	}
}

func (r *Registry) closeSessions() error {
	var errs []error
	for _, s := range r.sessions {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
