package task_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/output"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/tasktest"
)

// What the documentation says of the edges: twice, too late, at the same moment.

// ended returns a context that has ended.
func ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Owners that were moved may have got below one that is seen only now.
func TestOwnersNeverFormACircle(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	alice := task.WithOwner(t.Context(), "alice")
	bob := task.WithOwner(alice, "bob")
	byBob, err := tasks.Register(bob, task.Spec{})
	require.NoError(t, err)
	tasks.Adopt("alice", "carol")
	byCarol, err := tasks.Register(task.WithOwner(bob, "carol"), task.Spec{})
	require.NoError(t, err)
	require.False(t, tasks.Idle(task.Root))
	require.NoError(t, tasks.KillOwned(t.Context(), "carol"))
	require.Equal(t, task.Killed, byBob.State().Status)
	require.Equal(t, task.Killed, byCarol.State().Status)
	drain(t, inbox)
}

func TestOwnerStaysWhereItWasSeenFirst(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	alice := task.WithOwner(t.Context(), "alice")
	given, err := tasks.Register(alice, task.Spec{Owner: "carol"})
	require.NoError(t, err)
	_, err = tasks.Register(task.WithOwner(alice, "bob"), task.Spec{})
	require.NoError(t, err)
	later, err := tasks.Register(task.WithOwner(t.Context(), "bob"), task.Spec{})
	require.NoError(t, err)
	require.NoError(t, tasks.KillOwned(t.Context(), "alice"))
	require.Equal(t, task.Killed, given.State().Status, "an owner given in the spec is below that of the context")
	require.Equal(t, task.Killed, later.State().Status)
	drain(t, inbox)
}

func TestWaitAllWithAnEndedContext(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	running, over := tasktest.NewFake(t, tasks, task.Spec{}), tasktest.NewFake(t, tasks, task.Spec{})
	over.End(task.Result{Status: task.Completed})
	states, err := tasks.WaitAll(ended(t), running.ID(), over.ID())
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []task.Status{task.Running, task.Completed}, []task.Status{states[0].Status, states[1].Status})
	st, err := running.Wait(ended(t))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, task.Running, st.Status, "the state of that moment")
	for range 100 { // an end that is there wins, every time
		_, err := over.Wait(ended(t))
		require.NoError(t, err)
		_, err = tasks.WaitAny(ended(t), running.ID(), over.ID())
		require.NoError(t, err)
		require.NoError(t, over.Kill(ended(t)))
	}
	st, err = tasks.Kill(t.Context(), running.ID())
	require.NoError(t, err)
	require.Equal(t, task.Killed, st.Status)
	drain(t, inbox)
}

func TestFinishAndTheOutput(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	closes := tasktest.NewFake(t, tasks, task.Spec{})
	closes.Print("all")
	closes.End(task.Result{Status: task.Completed})
	require.True(t, closes.Output().Stat().Ended)
	got, err := io.ReadAll(closes.Output().Follow(t.Context(), 0))
	require.NoError(t, err)
	require.Equal(t, "all", string(got))

	open := tasktest.NewFake(t, tasks, task.Spec{})
	open.End(task.Result{Status: task.Completed, OutputOpen: true})
	require.ErrorIs(t, open.Finish(task.Result{Status: task.Failed}), task.ErrEnded)
	require.NoError(t, open.Kill(t.Context()))
	require.False(t, open.Output().Stat().Ended, "a later end changes nothing")
	open.Print("late")
	_, err = open.WaitFor(t.Context(), regexp.MustCompile("never"))
	require.ErrorIs(t, err, task.ErrEnded)
	drain(t, inbox)
}

func TestWaitForEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		f := tasktest.NewFake(t, tasks, task.Spec{})
		f.Print("up\r\n" + strings.Repeat("x", 50_000) + "MARK\n")
		line, err := f.WaitFor(t.Context(), regexp.MustCompile("^up$"))
		require.NoError(t, err)
		require.Equal(t, "up", line, "without its line end")
		line, err = f.WaitFor(t.Context(), regexp.MustCompile("xMARK$"))
		require.NoError(t, err)
		require.Len(t, line, 50_004)
		f.Print(strings.Repeat("y", 100_000) + "\n")
		line, err = f.WaitFor(t.Context(), regexp.MustCompile("y"))
		require.NoError(t, err)
		require.Len(t, line, 64<<10, "each 64 KiB count as a line")
		_, err = f.WaitFor(ended(t), regexp.MustCompile("never"))
		require.ErrorIs(t, err, context.Canceled)

		result := make(chan error)
		go func() {
			_, err := f.WaitFor(t.Context(), regexp.MustCompile("never"))
			result <- err
		}()
		synctest.Wait()
		f.End(task.Result{Status: task.Completed, OutputOpen: true})
		require.ErrorIs(t, <-result, task.ErrEnded, "woken by the end")
		drain(t, inbox)
	})
}

func TestWatchOfAClosedRegistry(t *testing.T) {
	tasks, _ := tasktest.Open(t)
	require.NoError(t, tasks.Close())
	for range tasks.Watch(context.Background()) {
		t.Error("an event")
	}
}

// Every change is an event.
func TestWatchSeesEveryKindOfChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		ctx, cancel := context.WithCancel(t.Context())
		events := tasks.Watch(ctx)
		h, err := tasks.Register(ctx, task.Spec{})
		require.NoError(t, err)
		require.NoError(t, h.Start(stubborn{}))
		tasks.Adopt(task.Root, "alice")
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		require.ErrorIs(t, h.Kill(short), context.DeadlineExceeded)
		require.NoError(t, h.Finish(task.Result{Status: task.Completed, Descendants: []int{7}}))

		left := tasktest.NewFake(t, tasks, task.Spec{})
		left.End(task.Result{Status: task.Completed, Descendants: []int{7}})
		require.NoError(t, left.Kill(ctx))
		go func() { time.Sleep(time.Minute); cancel() }()
		var got []string
		for ev := range events {
			s := ev.State
			got = append(got, fmt.Sprint(s.Status, s.Owner, s.Reason, s.Descendants))
		}
		require.Equal(t, []string{
			"pending[]", "running[]", "runningalice[]", "runningalicerequested[]", "completedaliceexited[7]",
			"pending[]", "running[]", "completedexited[7]", "completedexited[]",
		}, got)
		require.Empty(t, h.State().KilledBy)
		drain(t, inbox)
		require.NoError(t, h.Update(func(s task.State) task.State { s.Descendants = nil; return s }))
	})
}

func TestKillThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		alice := task.WithOwner(t.Context(), "alice")
		h, err := tasks.Register(alice, task.Spec{})
		require.NoError(t, err)
		require.NoError(t, h.Start(stubborn{}))
		require.NoError(t, h.Update(func(s task.State) task.State { s.WaitingForInput = true; return s }))
		short, stop := context.WithTimeout(alice, time.Second)
		defer stop()
		require.ErrorIs(t, h.Kill(short), context.DeadlineExceeded)
		require.Equal(t, task.Owner("alice"), h.State().KilledBy)
		require.NoError(t, h.Finish(task.Result{Status: task.Completed}))
		st := h.State()
		require.Equal(t, task.Exited, st.Reason, "it ended by itself")
		require.Empty(t, st.KilledBy)
		require.False(t, st.WaitingForInput)
		drain(t, inbox)
	})
}

func TestKilledFunctionThatPanics(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	h, err := tasks.Go(t.Context(), task.Spec{}, func(ctx context.Context, _ *task.Run) (string, error) {
		<-ctx.Done()
		panic("too late")
	})
	require.NoError(t, err)
	require.NoError(t, h.Kill(t.Context()))
	require.Equal(t, task.Killed, h.State().Status)
	require.Equal(t, task.Requested, h.State().Reason)
	require.Equal(t, "panic: too late", h.State().Error)
	drain(t, inbox)
}

// slow is a task that takes a second to stop, and then says how that went.
type slow struct{ err error }

func (s slow) Kill(context.Context) error { time.Sleep(time.Second); return s.err }

func TestKillOwnedKillsAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		one, two := errors.New("one"), errors.New("two")
		var handles []*task.Handle
		for _, err := range []error{one, nil, two} {
			h, rerr := tasks.Register(t.Context(), task.Spec{})
			require.NoError(t, rerr)
			require.NoError(t, h.Start(slow{err}))
			handles = append(handles, h)
		}
		began := time.Now()
		err := tasks.KillOwned(t.Context(), task.Root)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, err, one)
		require.ErrorIs(t, err, two)
		require.Equal(t, task.Killed, handles[1].State().Status)
		handles[0].Finish(task.Result{Status: task.Killed})
		handles[2].Finish(task.Result{Status: task.Killed})
		drain(t, inbox)
	})
}

func TestUpdateOfEveryFreeField(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{Data: []byte(`{"a":1}`)})
	want := task.State{
		Description: "d", Command: "c", Stalled: true, WaitingForInput: true, Backgrounded: true,
		Descendants: []int{7}, Data: []byte(`{"b":2}`),
	}
	require.NoError(t, f.Update(func(s task.State) task.State {
		s.Description, s.Command, s.Data, s.Descendants = want.Description, want.Command, want.Data, want.Descendants
		s.Stalled, s.WaitingForInput, s.Backgrounded = true, true, true
		return s
	}))
	got := f.State()
	require.Equal(t, want, task.State{
		Description: got.Description, Command: got.Command, Stalled: got.Stalled, WaitingForInput: got.WaitingForInput,
		Backgrounded: got.Backgrounded, Descendants: got.Descendants, Data: got.Data,
	})
	require.NoError(t, f.Update(func(s task.State) task.State { s.Data[2] = 'c'; return s }), "what f is given is f's own")
	require.Equal(t, `{"c":2}`, string(f.State().Data))
	f.End(task.Result{Status: task.Completed})
	require.NoError(t, f.Kill(t.Context()))
	drain(t, inbox)
}

func TestSpecAndConfigAreCopied(t *testing.T) {
	data := []byte(`{"a":1}`)
	limits := map[task.Type]int{task.Dream: 1}
	tasks, err := task.Open(t.Context(), task.Config{MaxRunningOf: limits})
	require.NoError(t, err)
	f := tasktest.NewFake(t, tasks, task.Spec{Type: task.Dream, Data: data})
	data[2], limits[task.Dream] = 'b', 9
	require.Equal(t, `{"a":1}`, string(f.State().Data))
	_, err = tasks.Register(t.Context(), task.Spec{Type: task.Dream})
	require.Error(t, err)
	f.End(task.Result{Status: task.Completed})
	require.NoError(t, tasks.Close())
}

func TestLatchClaimedBeforeStart(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	h, err := tasks.Register(t.Context(), task.Spec{})
	require.NoError(t, err)
	require.True(t, h.ClaimNotification())
	own := new(hostTask)
	require.NoError(t, h.Start(own))
	require.True(t, own.State().Notified, "carried over")
	require.NoError(t, h.Finish(task.Result{Status: task.Completed}))
	require.Empty(t, drain(t, inbox))
}

func TestAttachmentsCommittedOutOfOrder(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.Print("one")
	older := tasks.Attachments(task.Root)
	f.Print("two")
	newer := tasks.Attachments(task.Root)
	require.NoError(t, newer[0].Told())
	require.NoError(t, older[0].Told())
	require.EqualValues(t, 6, f.State().OutputTold, "never falls")
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
}

func TestLimitsOfTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := new(notify.Queue)
		tasks, err := task.Open(t.Context(), task.Config{Notify: inbox, OutputLimit: 10, CloseLimit: time.Second})
		require.NoError(t, err)
		f := tasktest.NewFake(t, tasks, task.Spec{DropOutput: true})
		f.Print("0123456789ab")
		require.EqualValues(t, 10, f.State().OutputSize)
		h, err := tasks.Register(t.Context(), task.Spec{})
		require.NoError(t, err)
		require.NoError(t, h.Start(stubborn{}))
		began := time.Now()
		require.Error(t, tasks.Close())
		require.Equal(t, time.Second, time.Since(began))
		_, err = tasks.Register(t.Context(), task.Spec{})
		require.ErrorIs(t, err, task.ErrClosed)
	})
}

// The lists of CloseError are apart from each other.
func TestCloseErrorSaysWhatWasWhat(t *testing.T) {
	inbox := new(notify.Queue)
	tasks, err := task.Open(t.Context(), task.Config{Notify: inbox})
	require.NoError(t, err)
	fake := func(description string) *tasktest.Fake {
		return tasktest.NewFake(t, tasks, task.Spec{Description: description})
	}
	fake("running")
	fake("untold").End(task.Result{Status: task.Completed})
	left := fake("left")
	left.End(task.Result{Status: task.Completed, Descendants: []int{7}})
	take(t, left)
	told := fake("told")
	told.End(task.Result{Status: task.Completed})
	take(t, told)
	require.NoError(t, tasks.Evict(t.Context(), told.ID()))

	var closed *task.CloseError
	require.ErrorAs(t, tasks.Close(), &closed)
	names := func(states []task.State) (names []string) {
		for _, s := range states {
			names = append(names, s.Description)
		}
		return names
	}
	require.Equal(t, []string{"running"}, names(closed.Killed))
	require.Equal(t, []string{"untold"}, names(closed.Untold))
	require.Equal(t, []string{"left"}, names(closed.Left))
	require.NoError(t, closed.Err)
}

func TestEvictionAndWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := new(notify.Queue)
		tasks, err := task.Open(t.Context(), task.Config{Notify: inbox, MemLimit: 1})
		require.NoError(t, err)
		left := tasktest.NewFake(t, tasks, task.Spec{})
		left.End(task.Result{Status: task.Completed, Descendants: []int{7}})
		take(t, left)
		require.ErrorIs(t, tasks.Evict(t.Context(), left.ID()), task.ErrInUse)
		time.Sleep(time.Hour)
		_, err = tasks.Register(t.Context(), task.Spec{})
		require.NoError(t, err)
		_, err = tasks.Get(t.Context(), left.ID())
		require.NoError(t, err, "kept while processes of it live")
		require.NoError(t, left.Kill(t.Context()))

		f := tasktest.NewFake(t, tasks, task.Spec{})
		f.Print("spilled")
		f.End(task.Result{Status: task.Completed})
		take(t, f)
		path := f.State().OutputFile
		time.Sleep(time.Hour)
		_, err = tasks.Register(t.Context(), task.Spec{}) // looks for what is due
		require.NoError(t, err)
		_, err = tasks.Get(t.Context(), f.ID())
		require.ErrorIs(t, err, task.ErrNotFound)
		_, err = f.Output().Since(0, 0)
		require.ErrorIs(t, err, output.ErrClosed)
		_, err = os.Stat(path)
		require.NoError(t, err, "the model has been given its path")
		require.Error(t, tasks.Close())
		_, err = os.Stat(path)
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

func TestOutputErrorIsInTheState(t *testing.T) {
	t.Setenv("TMPDIR", "/no/such/directory")
	tasks, err := task.Open(t.Context(), task.Config{MemLimit: 1})
	require.NoError(t, err)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.Print("does not fit")
	st := f.State()
	require.Contains(t, st.OutputError, "/no/such/directory")
	require.EqualValues(t, 12, st.OutputDropped)
	f.End(task.Result{Status: task.Completed})
	require.NoError(t, tasks.Close())
}

// An end that is in the owner's queue stays there when its tasks are adopted.
func TestAdoptLeavesWhatWasPushed(t *testing.T) {
	var hub notify.Hub
	alice, err := hub.Open("alice", task.Root)
	require.NoError(t, err)
	tasks, err := task.Open(t.Context(), task.Config{Notify: &hub})
	require.NoError(t, err)
	ctx := task.WithOwner(t.Context(), "alice")
	over, err := tasks.Register(ctx, task.Spec{})
	require.NoError(t, err)
	require.NoError(t, over.Finish(task.Result{Status: task.Completed}))
	runs, err := tasks.Register(ctx, task.Spec{})
	require.NoError(t, err)
	tasks.Adopt("alice", task.Root)
	require.NoError(t, runs.Finish(task.Result{Status: task.Completed}))
	require.Equal(t, string(over.ID()), drain(t, alice)[0].TaskID)
	require.Equal(t, string(runs.ID()), drain(t, hub.Root())[0].TaskID)
	require.NoError(t, tasks.Close())
}

// A writer that is over the limit may itself be asked for by the kill.
func TestOutputLimitWhileClosing(t *testing.T) {
	for range 50 {
		tasks, err := task.Open(t.Context(), task.Config{OutputLimit: 1})
		require.NoError(t, err)
		var writers sync.WaitGroup
		for range 4 {
			f := tasktest.NewFake(t, tasks, task.Spec{})
			writers.Go(func() { f.Output().Write([]byte("too much")) })
		}
		tasks.Close()
		writers.Wait()
	}
}

// A task that is killed while it is being started either never starts or is
// killed: a Kill that returned nil leaves nothing at work.
func TestKillRacesStart(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	rounds := 5_000
	if os.Getenv("AFOOT_FULL") != "" {
		rounds = 200_000
	}
	for range rounds {
		h, err := tasks.Register(t.Context(), task.Spec{})
		require.NoError(t, err)
		own := new(hostTask)
		var started error
		var race sync.WaitGroup
		race.Go(func() { started = h.Start(own) })
		race.Go(func() {
			if err := h.Kill(t.Context()); err != nil {
				t.Errorf("Kill: %v", err)
			}
		})
		race.Wait()
		require.Equal(t, started == nil, own.killed.Load() > 0, "Start = %v, and killed %d times", started, own.killed.Load())
		require.Equal(t, task.Killed, h.State().Status)
		require.Len(t, drain(t, inbox), 1)
		require.NoError(t, tasks.Evict(t.Context(), h.ID()))
	}
}

// After Shutdown, and after Close, every end is in the queue.
func TestShutdownAndTheLastEnd(t *testing.T) {
	for i := range 2_000 {
		inbox := new(notify.Queue)
		tasks, err := task.Open(t.Context(), task.Config{Notify: inbox})
		require.NoError(t, err)
		_, err = tasks.Go(t.Context(), task.Spec{}, func(context.Context, *task.Run) (string, error) { return "", nil })
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, tasks.Shutdown(t.Context()))
		} else {
			tasks.Close()
		}
		require.Len(t, drain(t, inbox), 1)
		tasks.Close()
	}
}

// A notice never stands behind the end of its task.
func TestNoticeRacesTheEnd(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	for range 5_000 {
		f := tasktest.NewFake(t, tasks, task.Spec{})
		var race sync.WaitGroup
		race.Go(func() { f.Notify(notify.Notification{Source: notify.Monitor, Summary: "line"}) })
		race.Go(func() { f.End(task.Result{Status: task.Failed}) })
		race.Wait()
		news := drain(t, inbox)
		require.Equal(t, "failed", news[len(news)-1].Status)
		require.NoError(t, tasks.Evict(t.Context(), f.ID()))
	}
}

// An output that ended before its task does not keep WaitFor busy.
func TestWaitForAfterTheOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		f := tasktest.NewFake(t, tasks, task.Spec{})
		f.Print("last")
		f.Output().End()
		result := make(chan error)
		go func() {
			_, err := f.WaitFor(t.Context(), regexp.MustCompile("never"))
			result <- err
		}()
		synctest.Wait() // would not return if it went round and round
		f.End(task.Result{Status: task.Completed})
		require.ErrorIs(t, <-result, task.ErrEnded)
		drain(t, inbox)
	})
}

func TestSummarySaysWhatWasDropped(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{Description: "x", OutputLimit: 10, DropOutput: true})
	f.Print("0123456789abc")
	f.End(task.Result{Status: task.Completed})
	require.Equal(t, `Background task "x" completed; 3 bytes of output were not kept`, drain(t, inbox)[0].Summary)
}

func TestSpecsThatCannotBeRecorded(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	_, err := tasks.Register(t.Context(), task.Spec{Data: []byte("{")})
	require.ErrorContains(t, err, "not JSON")
	_, err = tasks.Register(t.Context(), task.Spec{Command: strings.Repeat("x", 5<<20)})
	require.ErrorContains(t, err, "too large")
	require.Empty(t, tasks.List(t.Context()))
	f := tasktest.NewFake(t, tasks, task.Spec{})
	require.ErrorContains(t, f.Update(func(s task.State) task.State { s.Data = []byte("no"); return s }), "not JSON")
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
}
