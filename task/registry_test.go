package task_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/tasktest"
)

// drain takes everything out of the queue.
func drain(t testing.TB, inbox *notify.Queue) []notify.Notification {
	t.Helper()
	news, err := inbox.Drain(notify.Later)
	require.NoError(t, err)
	return news
}

// take takes a result, so that nothing is left untold.
func take(t testing.TB, handles ...interface {
	Take(context.Context) (task.State, error)
},
) {
	t.Helper()
	for _, h := range handles {
		_, err := h.Take(t.Context())
		require.NoError(t, err)
	}
}

func TestLifeOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		h, err := tasks.Register(t.Context(), task.Spec{
			Type: task.LocalAgent, Description: "review", Command: "/review", ToolUseID: "toolu_01", Data: []byte(`1`),
		})
		require.NoError(t, err)
		created := time.Now()
		require.Equal(t, task.State{
			ID: h.ID(), Run: 1, Type: task.LocalAgent, Status: task.Pending, Description: "review", Command: "/review",
			ToolUseID: "toolu_01", Created: created, Data: []byte(`1`),
		}, h.State())

		time.Sleep(time.Second)
		require.NoError(t, h.Start(new(hostTask)))
		require.Equal(t, task.Running, h.State().Status)
		require.Equal(t, created.Add(time.Second), h.State().Started)
		require.Error(t, h.Start(new(hostTask)), "a second start")

		time.Sleep(time.Second)
		require.NoError(t, h.Finish(task.Result{Status: task.Completed, Text: "fine"}))
		st := h.State()
		require.Equal(t, task.Completed, st.Status)
		require.Equal(t, task.Exited, st.Reason)
		require.Equal(t, created.Add(2*time.Second), st.Ended)
		require.True(t, st.Notified)
		require.Equal(t, `Background task "/review" completed`, st.Summary)

		require.ErrorIs(t, h.Finish(task.Result{Status: task.Failed}), task.ErrEnded)
		require.ErrorIs(t, h.Start(new(hostTask)), task.ErrEnded)
		require.Equal(t, st, h.State(), "a second end changes nothing")

		require.Equal(t, []notify.Notification{{
			ID: string(h.ID()) + ".1", Source: notify.BackgroundTask, TaskID: string(h.ID()), ToolUseID: "toolu_01",
			Status: "completed", Summary: st.Summary, Result: "fine", Time: st.Ended,
		}}, withoutTold(drain(t, inbox)))
	})
}

func withoutTold(news []notify.Notification) []notify.Notification {
	for i := range news {
		news[i].Told = nil
	}
	return news
}

func TestFinishNeedsATerminalStatus(t *testing.T) {
	tasks, _ := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	require.Error(t, f.Finish(task.Result{}))
	require.Equal(t, task.Running, f.State().Status)
	require.Panics(t, func() { f.Start(nil) })
	f.End(task.Result{Status: task.Completed})
	take(t, f)
}

func TestSummaryOfATaskWhoseKindHasNone(t *testing.T) {
	for want, res := range map[string]task.Result{
		`Background task "x" completed`:           {Status: task.Completed},
		`Background task "x" failed: no such key`: {Status: task.Failed, Error: "no such key"},
		`Background task "x" killed (requested)`:  {Status: task.Killed},
		`Background task "x" killed (time limit)`: {Status: task.Killed, Reason: task.TimeLimit},
		`as the kind has it`:                      {Status: task.Failed, Summary: "as the kind has it"},
	} {
		tasks, _ := tasktest.Open(t)
		f := tasktest.NewFake(t, tasks, task.Spec{Description: "x"})
		f.End(res)
		require.Equal(t, want, f.State().Summary)
		take(t, f)
	}
}

func TestHooks(t *testing.T) {
	refusal := errors.New("quota used up")
	var seen []string
	tasks, err := task.Open(t.Context(), task.Config{TaskCreated: []task.Hook{
		func(_ context.Context, s task.Spec) (task.Spec, error) {
			seen = append(seen, "first "+s.Description)
			s.Description += " (checked)"
			return s, nil
		},
		func(_ context.Context, s task.Spec) (task.Spec, error) {
			seen = append(seen, "second "+s.Description)
			if s.Type == task.Dream {
				return s, refusal
			}
			return s, nil
		},
	}})
	require.NoError(t, err)
	defer tasks.Close()
	h, err := tasks.Register(t.Context(), task.Spec{Description: "a"})
	require.NoError(t, err)
	require.Equal(t, "a (checked)", h.State().Description)
	require.Equal(t, []string{"first a", "second a (checked)"}, seen)

	_, err = tasks.Register(t.Context(), task.Spec{Type: task.Dream, Description: "b"})
	var refused *task.RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, refusal)
	require.EqualError(t, err, `task: "b (checked)" refused: quota used up`)
	require.Len(t, tasks.List(t.Context()), 1)
}

func TestLimits(t *testing.T) {
	tasks, err := task.Open(t.Context(), task.Config{MaxRunning: 3, MaxRunningOf: map[task.Type]int{task.LocalBash: 2}})
	require.NoError(t, err)
	defer tasks.Close()
	bash := tasktest.NewFake(t, tasks, task.Spec{Type: task.LocalBash})
	_, err = tasks.Register(t.Context(), task.Spec{Type: task.LocalBash}) // pending counts
	require.NoError(t, err)

	_, err = tasks.Register(t.Context(), task.Spec{Type: task.LocalBash})
	var limit *task.LimitError
	require.ErrorAs(t, err, &limit)
	require.Equal(t, task.LimitError{Type: task.LocalBash, Limit: 2}, *limit)
	require.ErrorContains(t, err, "2 tasks of type local_bash")

	tasktest.NewFake(t, tasks, task.Spec{Type: task.Dream})
	_, err = tasks.Register(t.Context(), task.Spec{Type: task.LocalAgent})
	require.ErrorAs(t, err, &limit)
	require.Equal(t, task.LimitError{Limit: 3}, *limit)

	bash.End(task.Result{Status: task.Completed})
	_, err = tasks.Register(t.Context(), task.Spec{Type: task.LocalBash})
	require.NoError(t, err, "ended tasks don't count")
}

// Of any number of callers at once no more get in than may.
func TestLimitUnderRace(t *testing.T) {
	tasks, err := task.Open(t.Context(), task.Config{MaxRunning: 5})
	require.NoError(t, err)
	defer tasks.Close()
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() { tasks.Register(t.Context(), task.Spec{}) })
	}
	callers.Wait()
	require.Len(t, tasks.List(t.Context()), 5)
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]task.Config{
		"two kinds of a type": {Kinds: []task.Kind{new(kind), new(kind)}},
		"negative output":     {OutputLimit: -1},
		"negative memory":     {MemLimit: -1},
		"negative running":    {MaxRunning: -1},
		"negative close":      {CloseLimit: -1},
	} {
		_, err := task.Open(t.Context(), cfg)
		require.Error(t, err, name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := task.Open(ended, task.Config{})
	require.ErrorIs(t, err, context.Canceled)

	tasks, _ := tasktest.Open(t)
	_, err = tasks.Register(ended, task.Spec{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = tasks.Register(t.Context(), task.Spec{OutputLimit: -1})
	require.Error(t, err)
	require.Empty(t, tasks.List(t.Context()))
}

// kind is a kind that counts how often it is closed.
type kind struct {
	closed int
	err    error
}

func (k *kind) Type() task.Type { return "counted" }
func (k *kind) Close() error    { k.closed++; return k.err }

func (k *kind) Recover(context.Context, *task.Handle) (task.Task, error) {
	return nil, task.ErrGone
}

func TestKinds(t *testing.T) {
	k := &kind{err: errors.New("socket in use")}
	tasks, err := task.Open(t.Context(), task.Config{Kinds: []task.Kind{k}})
	require.NoError(t, err)
	require.Equal(t, k, tasks.Kind("counted"))
	require.Nil(t, tasks.Kind(task.Dream))
	require.ErrorIs(t, tasks.Close(), k.err)
	require.NoError(t, tasks.Close(), "twice")
	require.Equal(t, 1, k.closed)
}

func TestGetAndList(t *testing.T) {
	tasks, _ := tasktest.Open(t)
	var ids []task.ID
	for range 20 {
		f := tasktest.NewFake(t, tasks, task.Spec{})
		f.End(task.Result{Status: task.Completed})
		take(t, f)
		ids = append(ids, f.ID())
	}
	states := tasks.List(t.Context())
	require.Len(t, states, 20)
	for i, st := range states {
		require.Equal(t, ids[i], st.ID, "oldest first")
		h, err := tasks.Get(t.Context(), st.ID)
		require.NoError(t, err)
		require.Equal(t, st, h.State())
	}
	for _, id := range []task.ID{"b7x0k2m9q", "", "../../etc/passwd"} {
		_, err := tasks.Get(t.Context(), id)
		require.ErrorIs(t, err, task.ErrNotFound)
		_, err = tasks.Output(t.Context(), id)
		require.ErrorIs(t, err, task.ErrNotFound)
		_, err = tasks.Kill(t.Context(), id)
		require.ErrorIs(t, err, task.ErrNotFound)
	}
}

func TestOwners(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	root := t.Context()
	alice := task.WithOwner(root, "alice")
	bob := task.WithOwner(alice, "bob")
	require.Equal(t, task.Owner("bob"), task.OwnerOf(bob))
	require.Equal(t, task.Root, task.OwnerOf(task.WithOwner(bob, task.Root)))
	require.Equal(t, task.Root, task.OwnerOf(root))

	mine, err := tasks.Register(alice, task.Spec{Description: "hers"})
	require.NoError(t, err)
	require.Equal(t, task.Owner("alice"), mine.State().Owner)
	given, err := tasks.Register(alice, task.Spec{Owner: "carol"})
	require.NoError(t, err)
	require.Equal(t, task.Owner("carol"), given.State().Owner, "Spec.Owner wins")

	// Another owner's id is as if it were not there.
	for name, call := range map[string]func(context.Context) error{
		"Get":     func(ctx context.Context) error { _, err := tasks.Get(ctx, mine.ID()); return err },
		"Output":  func(ctx context.Context) error { _, err := tasks.Output(ctx, mine.ID()); return err },
		"Kill":    func(ctx context.Context) error { _, err := tasks.Kill(ctx, mine.ID()); return err },
		"WaitAll": func(ctx context.Context) error { _, err := tasks.WaitAll(ctx, mine.ID()); return err },
		"WaitAny": func(ctx context.Context) error { _, err := tasks.WaitAny(ctx, mine.ID()); return err },
	} {
		require.ErrorIs(t, call(bob), task.ErrNotFound, name)
	}
	require.NoError(t, tasks.Evict(bob, mine.ID()), "as for an id that is not there")
	require.Empty(t, tasks.List(bob))
	require.Len(t, tasks.List(alice), 1)
	require.Len(t, tasks.List(root), 2, "the root sees all")

	require.NoError(t, given.Finish(task.Result{Status: task.Completed}))
	st, err := tasks.Kill(root, mine.ID())
	require.NoError(t, err)
	require.Equal(t, task.Killed, st.Status)
	news := drain(t, inbox)
	require.Equal(t, task.Owner("carol"), news[0].To)
	require.Equal(t, task.Owner("alice"), news[1].To)
}

func TestKillOwned(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	alice := task.WithOwner(t.Context(), "alice")
	bob := task.WithOwner(alice, "bob")
	byRoot := tasktest.NewFake(t, tasks, task.Spec{})
	byAlice, err := tasks.Register(alice, task.Spec{})
	require.NoError(t, err)
	byBob, err := tasks.Register(bob, task.Spec{})
	require.NoError(t, err)
	byCarol, err := tasks.Register(t.Context(), task.Spec{Owner: "carol"})
	require.NoError(t, err)

	require.NoError(t, tasks.KillOwned(t.Context(), "alice"))
	require.Equal(t, task.Killed, byAlice.State().Status)
	require.Equal(t, task.OwnerGone, byAlice.State().Reason)
	require.Equal(t, task.Killed, byBob.State().Status, "below alice")
	require.Equal(t, task.Running, byRoot.State().Status)
	require.Equal(t, task.Pending, byCarol.State().Status)
	require.Len(t, drain(t, inbox), 2)

	require.NoError(t, tasks.KillOwned(t.Context(), "nobody"))
	require.NoError(t, tasks.KillOwned(t.Context(), task.Root), "all there are")
	require.Equal(t, task.Killed, byRoot.State().Status)
	require.Equal(t, task.Killed, byCarol.State().Status)
	require.Len(t, drain(t, inbox), 2)
}

func TestD17Adopt(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	alice := task.WithOwner(t.Context(), "alice")
	bob := task.WithOwner(alice, "bob")
	h, err := tasks.Register(alice, task.Spec{})
	require.NoError(t, err)
	below, err := tasks.Register(bob, task.Spec{})
	require.NoError(t, err)

	tasks.Adopt("alice", "carol")
	require.NoError(t, h.Finish(task.Result{Status: task.Completed}))
	require.Equal(t, task.Owner("carol"), drain(t, inbox)[0].To, "the new owner is told")
	_, err = tasks.Get(task.WithOwner(t.Context(), "carol"), h.ID())
	require.NoError(t, err)
	_, err = tasks.Get(alice, h.ID())
	require.ErrorIs(t, err, task.ErrNotFound)

	require.NoError(t, tasks.KillOwned(t.Context(), "carol"))
	require.Equal(t, task.Killed, below.State().Status, "the owners below went with them")
	drain(t, inbox)
}

// An owner may be handed to one of those below it.
func TestAdoptByDescendant(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	alice := task.WithOwner(t.Context(), "alice")
	bob := task.WithOwner(alice, "bob")
	byBob, err := tasks.Register(bob, task.Spec{})
	require.NoError(t, err)
	byAlice, err := tasks.Register(alice, task.Spec{})
	require.NoError(t, err)

	tasks.Adopt("alice", "bob")
	tasks.Adopt("bob", "bob")
	require.Equal(t, task.Owner("bob"), byAlice.State().Owner)
	require.NoError(t, tasks.KillOwned(t.Context(), "alice"))
	require.Equal(t, task.Pending, byBob.State().Status, "no longer below alice")
	require.NoError(t, tasks.KillOwned(t.Context(), "bob"))
	require.Len(t, drain(t, inbox), 2)
}

func TestIdle(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	require.True(t, tasks.Idle(task.Root))
	h, err := tasks.Register(task.WithOwner(t.Context(), "alice"), task.Spec{})
	require.NoError(t, err)
	require.False(t, tasks.Idle(task.Root))
	require.False(t, tasks.Idle("alice"))
	require.True(t, tasks.Idle("bob"))
	require.NoError(t, h.Finish(task.Result{Status: task.Completed}))
	require.False(t, tasks.Idle("alice"), "not told yet")
	drain(t, inbox)
	require.True(t, tasks.Idle("alice"))
	require.True(t, tasks.Idle(task.Root))
}

func TestUpdate(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{Description: "a"})
	f.Print("12345")
	require.NoError(t, f.Update(func(s task.State) task.State {
		require.EqualValues(t, 5, s.OutputSize, "the whole state")
		s.Description, s.Stalled, s.Data = "b", true, []byte(`{"pid":1}`)
		return s
	}))
	require.Equal(t, "b", f.State().Description)
	require.True(t, f.State().Stalled)

	before := f.State()
	for name, change := range map[string]func(*task.State){
		"id":     func(s *task.State) { s.ID = "b7x0k2m9q" },
		"status": func(s *task.State) { s.Status = task.Completed },
		"latch":  func(s *task.State) { s.Notified = true },
		"time":   func(s *task.State) { s.Ended = time.Now() },
		"owner":  func(s *task.State) { s.Owner = "bob" },
		"exit":   func(s *task.State) { s.Exit = &task.Exit{} },
		"told":   func(s *task.State) { s.OutputTold = 5 },
	} {
		require.Error(t, f.Update(func(s task.State) task.State { change(&s); return s }), name)
		require.Equal(t, before, f.State(), name)
	}

	// Updates from many goroutines are all applied.
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 50 {
				f.Update(func(s task.State) task.State { s.Description += "."; return s })
			}
		})
	}
	callers.Wait()
	require.Len(t, f.State().Description, 1+8*50)
	f.End(task.Result{Status: task.Completed})
	require.False(t, f.State().Stalled, "a task that has ended waits for nothing")
	drain(t, inbox)
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		ctx, cancel := context.WithCancel(t.Context())
		events := tasks.Watch(ctx)
		hers := tasks.Watch(task.WithOwner(ctx, "alice"))
		f := tasktest.NewFake(t, tasks, task.Spec{Description: "a"})
		require.NoError(t, f.Update(func(s task.State) task.State { return s }))
		require.NoError(t, f.Update(func(s task.State) task.State { s.Description = "b"; return s }))
		f.End(task.Result{Status: task.Completed})
		drain(t, inbox)

		var got []string
		for ev := range events {
			got = append(got, ev.State.Description+" "+ev.State.Status.String())
			if ev.State.Status.Terminal() {
				break
			}
		}
		require.Equal(t, []string{"a pending", "a running", "b running", "b completed"}, got, "in order; no change, no event")
		cancel()
		for ev := range hers {
			t.Errorf("an event of another owner's task: %+v", ev)
		}
		for range events {
			t.Error("ranged over twice")
		}
	})
}

func TestSlowWatcher(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	events := tasks.Watch(t.Context())
	f := tasktest.NewFake(t, tasks, task.Spec{})
	for i := range 1000 {
		require.NoError(t, f.Update(func(s task.State) task.State { s.Data = []byte{byte('0' + i%10)}; return s }))
	}
	f.End(task.Result{Status: task.Killed})
	drain(t, inbox)
	seen, missed := 0, 0
	for ev := range events {
		seen++
		missed += ev.Missed
		if ev.State.Status.Terminal() {
			break
		}
	}
	require.Equal(t, 256, seen)
	require.Equal(t, 1003, seen+missed, "all events are seen or counted")
}

func TestWatchEndsWithTheRegistry(t *testing.T) {
	tasks, _ := tasktest.Open(t)
	events := tasks.Watch(t.Context())
	require.NoError(t, tasks.Close())
	for range events {
		t.Error("an event")
	}
}

func TestWaitAllAndAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		one := tasktest.NewFake(t, tasks, task.Spec{})
		two := tasktest.NewFake(t, tasks, task.Spec{})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := tasks.WaitAny(short, one.ID(), two.ID())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		states, err := tasks.WaitAll(short, one.ID(), two.ID())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, states, 2)
		_, err = tasks.WaitAny(t.Context())
		require.ErrorIs(t, err, task.ErrNotFound)

		go func() {
			time.Sleep(time.Second)
			two.End(task.Result{Status: task.Completed})
			time.Sleep(time.Second)
			one.End(task.Result{Status: task.Failed})
		}()
		st, err := tasks.WaitAny(t.Context(), one.ID(), two.ID())
		require.NoError(t, err)
		require.Equal(t, two.ID(), st.ID)
		states, err = tasks.WaitAll(t.Context(), one.ID(), two.ID())
		require.NoError(t, err)
		require.Equal(t, []task.Status{task.Failed, task.Completed}, []task.Status{states[0].Status, states[1].Status})

		// An end that is there wins over a context that has ended.
		states, err = tasks.WaitAll(short, one.ID(), two.ID())
		require.NoError(t, err)
		require.Len(t, states, 2)
		_, err = tasks.WaitAny(short, one.ID())
		require.NoError(t, err)
		drain(t, inbox)
	})
}

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		f := tasktest.NewFake(t, tasks, task.Spec{})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, tasks.Shutdown(short), context.DeadlineExceeded)
		_, err := tasks.Register(t.Context(), task.Spec{})
		require.ErrorIs(t, err, task.ErrClosed, "goes on refusing")
		go func() {
			time.Sleep(time.Minute)
			f.End(task.Result{Status: task.Completed})
		}()
		require.NoError(t, tasks.Shutdown(t.Context()), "called again")
		require.NoError(t, tasks.Shutdown(t.Context()), "with nothing running")
		require.Len(t, drain(t, inbox), 1)
	})
}

// stubborn is a task that does not stop.
type stubborn struct{}

func (stubborn) Kill(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inbox notify.Queue
		tasks, err := task.Open(t.Context(), task.Config{Notify: &inbox})
		require.NoError(t, err)
		h, err := tasks.Register(t.Context(), task.Spec{Description: "stubborn"})
		require.NoError(t, err)
		require.NoError(t, h.Start(stubborn{}))
		began := time.Now()
		var closed *task.CloseError
		require.ErrorAs(t, tasks.Close(), &closed)
		require.Equal(t, task.DefaultCloseLimit, time.Since(began))
		require.ErrorIs(t, closed, context.DeadlineExceeded)
		require.Equal(t, task.Killed, closed.Killed[0].Status)
		require.Equal(t, "it did not end in time and may still run", closed.Killed[0].Error)
		require.Len(t, drain(t, &inbox), 1, "its end is told like any other")
		require.NoError(t, tasks.Close(), "twice")
		_, err = h.Output().ReadAt(make([]byte, 1), 0)
		require.Error(t, err, "outputs are closed")
		require.Equal(t, task.Killed, h.State().Status, "states stay")
	})
}

func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		end := func(typ task.Type) *tasktest.Fake {
			f := tasktest.NewFake(t, tasks, task.Spec{Type: typ})
			f.End(task.Result{Status: task.Completed})
			return f
		}
		running := tasktest.NewFake(t, tasks, task.Spec{})
		untold := end(task.LocalAgent)
		require.ErrorIs(t, tasks.Evict(t.Context(), running.ID()), task.ErrInUse)
		require.ErrorIs(t, tasks.Evict(t.Context(), untold.ID()), task.ErrInUse)
		drain(t, inbox)
		require.NoError(t, tasks.Evict(t.Context(), untold.ID()))
		require.NoError(t, tasks.Evict(t.Context(), untold.ID()), "twice is harmless")
		_, err := tasks.Get(t.Context(), untold.ID())
		require.ErrorIs(t, err, task.ErrNotFound)
		require.Equal(t, task.Completed, untold.State().Status, "a handle stays good")

		agent, bash := end(task.LocalAgent), end(task.LocalBash)
		has := func(f *tasktest.Fake) bool {
			tasks.Attachments(task.Root)
			_, err := tasks.Get(t.Context(), f.ID())
			return err == nil
		}
		time.Sleep(time.Hour)
		require.True(t, has(agent), "not told yet")
		drain(t, inbox)
		time.Sleep(29 * time.Second)
		require.True(t, has(agent))
		time.Sleep(2 * time.Second)
		require.False(t, has(agent), "agents 30 s")
		require.True(t, has(bash))
		time.Sleep(task.DefaultRetention)
		require.False(t, has(bash))
		require.True(t, has(running))
		running.End(task.Result{Status: task.Completed})
		drain(t, inbox)
	})
}

func TestRetentionOfAType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, err := task.Open(t.Context(), task.Config{Retention: map[task.Type]time.Duration{task.LocalAgent: time.Hour, task.Dream: 0}})
		require.NoError(t, err)
		for _, typ := range []task.Type{task.LocalAgent, task.Dream} {
			tasktest.NewFake(t, tasks, task.Spec{Type: typ}).End(task.Result{Status: task.Completed})
		}
		time.Sleep(2 * time.Second)
		tasks.Attachments(task.Root)
		states := tasks.List(t.Context())
		require.Len(t, states, 1)
		require.Equal(t, task.LocalAgent, states[0].Type)
		require.NoError(t, tasks.Close())
	})
}

// Without a sink ends count as told.
func TestNoSink(t *testing.T) {
	tasks, err := task.Open(t.Context(), task.Config{})
	require.NoError(t, err)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.Notify(notify.Notification{Source: notify.Progress, Summary: "half"})
	f.End(task.Result{Status: task.Completed})
	require.True(t, tasks.Idle(task.Root))
	require.NoError(t, tasks.Close())
}
