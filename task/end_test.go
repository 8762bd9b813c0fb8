package task_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/tasktest"
)

// Faults that users of such systems reported, under the ids of the list of cases.

func TestH02TakeAndQueue(t *testing.T) {
	tests := []struct {
		name string
		run  func(t *testing.T, f *tasktest.Fake, inbox *notify.Queue)
		told int // notifications left in the queue
	}{
		{"waiting takes nothing", func(t *testing.T, f *tasktest.Fake, _ *notify.Queue) {
			f.End(task.Result{Status: task.Completed})
			_, err := f.Wait(t.Context())
			require.NoError(t, err)
		}, 1},
		{"killing takes nothing", func(t *testing.T, f *tasktest.Fake, _ *notify.Queue) {
			require.NoError(t, f.Kill(t.Context()))
		}, 1},
		{"taken before the end", func(t *testing.T, f *tasktest.Fake, _ *notify.Queue) {
			taker := f.Taker()
			f.End(task.Result{Status: task.Completed})
			st, err := taker.Take(t.Context())
			require.NoError(t, err)
			require.Equal(t, task.Completed, st.Status)
		}, 0},
		{"taken before the end, leased before the taking", func(t *testing.T, f *tasktest.Fake, inbox *notify.Queue) {
			taker := f.Taker()
			f.End(task.Result{Status: task.Completed})
			require.True(t, inbox.Lease(notify.Later).Empty())
			_, err := taker.Take(t.Context())
			require.NoError(t, err)
		}, 0},
		{"taken after the end", func(t *testing.T, f *tasktest.Fake, _ *notify.Queue) {
			f.End(task.Result{Status: task.Completed})
			take(t, f, f)
		}, 0},
		{"killed, then taken", func(t *testing.T, f *tasktest.Fake, _ *notify.Queue) {
			require.NoError(t, f.Kill(t.Context()))
			take(t, f)
		}, 0},
		{"taken while on lease, call fails", func(t *testing.T, f *tasktest.Fake, inbox *notify.Queue) {
			f.End(task.Result{Status: task.Completed})
			lease := inbox.Lease(notify.Later)
			require.False(t, lease.Empty())
			take(t, f)
			require.NoError(t, lease.Return())
		}, 0},
		{"taker gave up", func(t *testing.T, f *tasktest.Fake, _ *notify.Queue) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := f.Take(ended)
			require.ErrorIs(t, err, context.Canceled)
			f.End(task.Result{Status: task.Completed})
		}, 1},
		{"one of two takers gave up", func(t *testing.T, f *tasktest.Fake, _ *notify.Queue) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			stays := f.Taker()
			_, err := f.Take(ended)
			require.ErrorIs(t, err, context.Canceled)
			f.End(task.Result{Status: task.Completed})
			_, err = stays.Take(ended)
			require.NoError(t, err, "a result that is there wins")
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tasks, inbox := tasktest.Open(t)
			f := tasktest.NewFake(t, tasks, task.Spec{})
			tt.run(t, f, inbox)
			require.Len(t, drain(t, inbox), tt.told)
			require.True(t, tasks.Idle(task.Root), "told or taken")
		})
	}
}

// A taker that gives up while the task ends either has the result, or the queue
// has it: never both, never neither.
func TestTakerRacesEnd(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	for range 2000 {
		f := tasktest.NewFake(t, tasks, task.Spec{})
		ctx, cancel := context.WithCancel(t.Context())
		taker := f.Taker()
		var race sync.WaitGroup
		race.Go(cancel)
		race.Go(func() { f.End(task.Result{Status: task.Completed}) })
		_, err := taker.Take(ctx)
		race.Wait()
		news := drain(t, inbox)
		require.Equal(t, err != nil, len(news) == 1, "Take = %v with %d notifications", err, len(news))
		require.LessOrEqual(t, len(news), 1)
	}
}

func TestH03SimultaneousEnds(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	var ends sync.WaitGroup
	for range 50 {
		f := tasktest.NewFake(t, tasks, task.Spec{})
		ends.Go(func() { f.End(task.Result{Status: task.Completed}) })
	}
	ends.Wait()
	require.Len(t, ids(drain(t, inbox)), 50)
}

func ids(news []notify.Notification) map[string]int {
	seen := map[string]int{}
	for _, n := range news {
		seen[n.ID]++
	}
	return seen
}

// Ten thousand tasks end at once while one goroutine leases in a loop.
func TestH04EveryEndIsToldOnce(t *testing.T) {
	const n = 10_000
	tasks, inbox := tasktest.Open(t)
	var ends sync.WaitGroup
	begin := make(chan struct{})
	for range n {
		f := tasktest.NewFake(t, tasks, task.Spec{})
		ends.Go(func() {
			<-begin
			f.End(task.Result{Status: task.Failed})
		})
	}
	close(begin)
	seen := map[string]int{}
	for round := 0; len(seen) < n; round++ {
		require.NoError(t, inbox.Wait(t.Context(), notify.Next))
		lease := inbox.Lease(notify.Next)
		if round%3 == 0 {
			require.NoError(t, lease.Return())
			continue
		}
		for _, note := range lease.Notifications() {
			seen[note.ID]++
		}
		require.NoError(t, lease.Commit())
	}
	ends.Wait()
	require.Empty(t, drain(t, inbox))
	for id, times := range seen {
		require.Equal(t, 1, times, id)
	}
	require.True(t, tasks.Idle(task.Root))
}

func TestH14NoReminderAfterTheEnd(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.Print("working\n")
	require.Len(t, tasks.Attachments(task.Root), 1)
	f.End(task.Result{Status: task.Completed})
	for range 10 {
		require.Empty(t, tasks.Attachments(task.Root))
	}
	f.Notify(notify.Notification{Source: notify.Progress, Summary: "still at it"})
	require.Len(t, drain(t, inbox), 1, "the end alone")
}

func TestH15UserSpeaksInTheSameMoment(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.End(task.Result{Status: task.Completed})
	inbox.Push(notify.Notification{Source: notify.UserAction, Summary: "stop <now>"})
	news := drain(t, inbox)
	require.Len(t, news, 2)
	require.Equal(t, notify.BackgroundTask, news[0].Source)
	require.Equal(t, notify.UserAction, news[1].Source)
	require.Equal(t, "stop <now>", news[1].Summary)
}

func TestH17FailedCallTellsAgain(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.Print("half\n")
	other := tasktest.NewFake(t, tasks, task.Spec{})
	other.End(task.Result{Status: task.Failed})

	first := inbox.Lease(notify.Later, tasks.Attachments(task.Root)...)
	text := first.Text()
	require.NoError(t, first.Return())
	require.False(t, tasks.Idle(task.Root), "the model never saw it")
	second := inbox.Lease(notify.Later, tasks.Attachments(task.Root)...)
	require.Equal(t, withoutTold(first.Notifications())[0], withoutTold(second.Notifications())[0])
	require.Equal(t, text, second.Text())
	require.NoError(t, second.Commit())
	require.Empty(t, tasks.Attachments(task.Root))
	require.EqualValues(t, 5, f.State().OutputTold)
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
}

// Kill races the end: one terminal state, one notification, and no result lost.
func TestH21KillRacesEnd(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	seen := map[task.Status]int{}
	for range 10_000 {
		begin := make(chan struct{})
		h, err := tasks.Go(t.Context(), task.Spec{}, func(context.Context, *task.Run) (string, error) {
			<-begin
			return "done", nil
		})
		require.NoError(t, err)
		close(begin)
		require.NoError(t, h.Kill(t.Context()))
		st := h.State()
		require.True(t, st.Status == task.Completed || st.Status == task.Killed, "%v", st.Status)
		require.Equal(t, st.Status == task.Killed, st.Reason == task.Requested, "%v because of %q", st.Status, st.Reason)
		news := drain(t, inbox)
		require.Len(t, news, 1)
		require.Equal(t, st.Status.String(), news[0].Status)
		require.Equal(t, "done", news[0].Result)
		require.NoError(t, tasks.Evict(t.Context(), h.ID()))
		seen[st.Status]++
	}
	t.Logf("ended as: %v", seen)
}

// Of many that end a run, and many that claim its latch, one each wins.
func TestRunEndsOnce(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	for range 500 {
		f := tasktest.NewFake(t, tasks, task.Spec{})
		var won, claimed atomic.Int32
		var race sync.WaitGroup
		for _, status := range []task.Status{task.Completed, task.Failed, task.Killed} {
			race.Go(func() {
				if f.Finish(task.Result{Status: status}) == nil {
					won.Add(1)
				}
			})
		}
		race.Go(func() {
			if f.ClaimNotification() {
				claimed.Add(1)
			}
		})
		race.Wait()
		require.EqualValues(t, 1, won.Load())
		require.EqualValues(t, 1, int(claimed.Load())+len(drain(t, inbox)), "announced once")
	}
}

// The order of the end: who is woken or told finds the state final.
func TestOrderOfTheEnd(t *testing.T) {
	sink := &recorder{}
	tasks, err := task.Open(t.Context(), task.Config{Notify: sink})
	require.NoError(t, err)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	sink.onPush = func() {
		require.Equal(t, task.Completed, f.State().Status, "terminal before the push")
		require.True(t, f.State().Notified, "latched before the push")
		short, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := f.Wait(short)
		require.ErrorIs(t, err, context.Canceled, "waiters wake after the push")
	}
	f.End(task.Result{Status: task.Completed})
	require.Len(t, sink.pushed, 1)
	_, err = f.Wait(t.Context())
	require.NoError(t, err)
	require.NoError(t, sink.pushed[0].Told())
	require.NoError(t, tasks.Close())
}

// recorder is a sink that a host might have written.
type recorder struct {
	pushed []notify.Notification
	onPush func()
}

func (r *recorder) Push(n notify.Notification) { r.pushed = append(r.pushed, n); r.onPush() }
func (r *recorder) Retract(string) bool        { return false }

func TestPriority(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	for _, tt := range []struct {
		spec   notify.Priority
		status task.Status
		next   bool
	}{
		{0, task.Completed, false},
		{0, task.Failed, true},
		{0, task.Killed, true},
		{notify.Next, task.Completed, true},
		{notify.Later, task.Failed, false},
	} {
		f := tasktest.NewFake(t, tasks, task.Spec{Priority: tt.spec})
		f.End(task.Result{Status: tt.status})
		news, err := inbox.Drain(notify.Next)
		require.NoError(t, err)
		require.Equal(t, tt.next, len(news) == 1, "%v %v", tt.spec, tt.status)
		drain(t, inbox)
	}
}

// Where there is no file to read, or the end went wrong, the notification carries
// the output itself.
func TestResultOfTheNotification(t *testing.T) {
	inbox := new(notify.Queue)
	tasks, err := task.Open(t.Context(), task.Config{Notify: inbox, MemLimit: 10_000})
	require.NoError(t, err)
	end := func(print, text string) notify.Notification {
		f := tasktest.NewFake(t, tasks, task.Spec{})
		f.Print(print)
		f.End(task.Result{Status: task.Completed, Text: text})
		return drain(t, inbox)[0]
	}
	require.Equal(t, "printed\n", end("printed\n", "").Result)
	require.Equal(t, "handed back", end("printed\n", "handed back").Result)

	long := end(strings.Repeat("x", 9_000), "")
	require.Empty(t, long.OutputFile)
	require.Contains(t, long.Result, "7000 bytes, 0 lines left out from offset 1000 on")
	require.Len(t, []rune(end("", strings.Repeat("é", 9_000)).Result), task.ResultLimit)

	spilled := end(strings.Repeat("x", 10_001), "")
	require.NotEmpty(t, spilled.OutputFile)
	require.Empty(t, spilled.Result, "the model can read the file")

	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.Print(strings.Repeat("x", 20_000) + "error: BOOM\n")
	f.End(task.Result{Status: task.Failed})
	failed := drain(t, inbox)[0]
	require.NotEmpty(t, failed.OutputFile)
	require.Contains(t, failed.Result, "error: BOOM", "an end that went wrong says more")
	require.NoError(t, tasks.Close())
}

func TestAttachments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		tell := func() []notify.Notification {
			t.Helper()
			lease := inbox.Lease(notify.Later, tasks.Attachments(task.Root)...)
			require.NoError(t, lease.Commit())
			time.Sleep(time.Second)
			return withoutTold(lease.Notifications())
		}
		f := tasktest.NewFake(t, tasks, task.Spec{Description: "build", ToolUseID: "toolu_01"})
		hers, err := tasks.Register(task.WithOwner(t.Context(), "alice"), task.Spec{})
		require.NoError(t, err)
		require.NoError(t, hers.Start(new(hostTask)))
		hers.Output().Write([]byte("x"))
		require.Empty(t, tell(), "nothing printed, and hers are not the root's")

		f.Print("one\n")
		require.Equal(t, []notify.Notification{{
			ID: string(f.ID()) + ".1+4", Source: notify.Progress, TaskID: string(f.ID()), ToolUseID: "toolu_01",
			Summary: `Background task "build" is running: 4 bytes of new output`, Result: "one\n", Time: time.Now(),
		}}, tell())
		require.Empty(t, tell())
		f.Print("日"[:1])
		require.Empty(t, tell(), "half a character is held back")
		f.Print("日"[1:])
		require.Equal(t, "日", tell()[0].Result)
		require.Len(t, tasks.Attachments("alice"), 1)

		// 2,000 characters a task and 8,000 in all, and everybody's turn comes.
		var fakes []*tasktest.Fake
		for range 6 {
			one := tasktest.NewFake(t, tasks, task.Spec{})
			one.Print(strings.Repeat("x", 5_000))
			fakes = append(fakes, one)
		}
		first := tell()
		require.Len(t, first, 4)
		shown := map[string]bool{}
		for _, n := range first {
			require.LessOrEqual(t, len([]rune(n.Result)), task.ResultLimit+200)
			require.Regexp(t, "left out from offset (1000|[89][0-9][0-9]) on", n.Result)
			shown[n.TaskID] = true
		}
		for _, one := range fakes {
			one.Print("more")
		}
		second := tell()
		require.False(t, shown[second[0].TaskID] || shown[second[1].TaskID], "those that had no room come first")
		require.Len(t, second, 6)
		require.NoError(t, tasks.KillOwned(t.Context(), task.Root))
		drain(t, inbox)
	})
}

func TestNotices(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{Description: "ssh"})
	f.Print("Password: ")
	f.Stall()
	require.True(t, f.State().Stalled)
	require.Equal(t, task.Running, f.State().Status)
	f.Notify(notify.Notification{Source: notify.Progress, Summary: "half", Result: "of it", Status: "completed"})
	news := withoutTold(drain(t, inbox))
	require.Len(t, news, 2)
	require.Equal(t, string(f.ID())+".1#1", news[0].ID)
	require.Equal(t, "Password: ", news[0].Result)
	require.Empty(t, news[0].Status)
	require.Equal(t, string(f.ID())+".1#2", news[1].ID)
	require.Equal(t, "half", news[1].Summary)
	require.Equal(t, "of it", news[1].Result)
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
}

func TestGo(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name   string
		f      task.Func
		status task.Status
		reason task.EndReason
		errs   string
		result string
	}{
		{"returns", func(context.Context, *task.Run) (string, error) { return "fine", nil }, task.Completed, task.Exited, "", "fine"},
		{"prints", func(_ context.Context, r *task.Run) (string, error) {
			_, err := fmt.Fprintln(r.Output(), "hello")
			return "", err
		}, task.Completed, task.Exited, "", "hello\n"},
		{"fails", func(context.Context, *task.Run) (string, error) { return "as far as it got", boom }, task.Failed, task.Exited, "boom", "as far as it got"},
		{"panics", func(context.Context, *task.Run) (string, error) { panic(boom) }, task.Failed, task.Panicked, "panic: boom", ""},
		{"leaves its goroutine", func(context.Context, *task.Run) (string, error) {
			runtime.Goexit()
			return "", nil
		}, task.Failed, task.Panicked, "the function called runtime.Goexit", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tasks, inbox := tasktest.Open(t)
			h, err := tasks.Go(t.Context(), task.Spec{Type: task.LocalAgent}, tt.f)
			require.NoError(t, err)
			st, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, tt.status, st.Status)
			require.Equal(t, tt.reason, st.Reason)
			require.Equal(t, tt.errs, st.Error)
			news := drain(t, inbox)
			require.Len(t, news, 1)
			if tt.name == "panics" {
				require.Contains(t, news[0].Result, "end_test.go", "where it panicked")
			} else {
				require.Equal(t, tt.result, news[0].Result)
			}
		})
	}
}

func TestKillOfAFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		h, err := tasks.Go(task.WithOwner(ctx, "alice"), task.Spec{}, func(ctx context.Context, r *task.Run) (string, error) {
			if ctx.Value(key{}) != "v" || task.OwnerOf(ctx) != "alice" {
				return "", errors.New("the values of the context are lost")
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			return "so far: 3", context.Cause(ctx)
		})
		require.NoError(t, err)
		cancel()
		synctest.Wait()
		require.Equal(t, task.Running, h.State().Status, "the context bounded the start only")

		short, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		require.ErrorIs(t, h.Kill(short), context.DeadlineExceeded)
		require.Equal(t, task.Running, h.State().Status)
		require.Equal(t, task.Requested, h.State().Reason, "it is being killed")
		require.NoError(t, h.KillFor(t.Context(), task.TimeLimit), "called again")
		st := h.State()
		require.Equal(t, task.Killed, st.Status)
		require.Equal(t, task.Requested, st.Reason, "the first reason stays")
		require.Equal(t, task.ErrKilled.Error(), st.Error)
		news := drain(t, inbox)
		require.Equal(t, "so far: 3", news[0].Result)
		require.Equal(t, task.Owner("alice"), news[0].To)
	})
}

func TestKilledByIsWhoAsked(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	alice := task.WithOwner(t.Context(), "alice")
	h, err := tasks.Register(alice, task.Spec{})
	require.NoError(t, err)
	st, err := tasks.Kill(alice, h.ID())
	require.NoError(t, err)
	require.Equal(t, task.Owner("alice"), st.KilledBy)
	require.Equal(t, task.Killed, st.Status, "a task that was never started ends by that alone")
	drain(t, inbox)
}

// A host's task that has only Kill leaves the end to the registry.
func TestKillOfATaskThatReportsNoEnd(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	h, err := tasks.Register(t.Context(), task.Spec{})
	require.NoError(t, err)
	own := new(hostTask)
	require.NoError(t, h.Start(own))
	require.NoError(t, h.Kill(t.Context()))
	require.EqualValues(t, 1, own.killed.Load())
	require.Equal(t, task.Killed, h.State().Status)
	require.Len(t, drain(t, inbox), 1)
}

func TestOutputLimit(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	h, err := tasks.Go(t.Context(), task.Spec{OutputLimit: 100}, func(ctx context.Context, r *task.Run) (string, error) {
		for ctx.Err() == nil {
			fmt.Fprintln(r.Output(), "y")
		}
		return "", ctx.Err()
	})
	require.NoError(t, err)
	st, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, task.Killed, st.Status)
	require.Equal(t, task.OutputLimit, st.Reason)
	require.EqualValues(t, 100, st.OutputSize)
	require.Positive(t, st.OutputDropped)
	require.Len(t, drain(t, inbox), 1)

	f := tasktest.NewFake(t, tasks, task.Spec{OutputLimit: 100, DropOutput: true})
	f.Print(strings.Repeat("x", 150))
	require.Equal(t, task.Running, f.State().Status)
	require.EqualValues(t, 50, f.State().OutputDropped)
	f.End(task.Result{Status: task.Completed})
	require.Len(t, drain(t, inbox), 1)
}

func ExampleRegistry_Go() {
	var inbox notify.Queue
	tasks, err := task.Open(context.Background(), task.Config{Notify: &inbox})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tasks.Close()

	_, err = tasks.Go(context.Background(), task.Spec{Type: task.LocalAgent, Description: "review"},
		func(ctx context.Context, run *task.Run) (string, error) { return "two comments", nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := inbox.Wait(context.Background(), notify.Later); err != nil {
		fmt.Println(err)
		return
	}
	news, err := inbox.Drain(notify.Later)
	fmt.Println(news[0].Summary, "-", news[0].Result, err)
	// Output: Background task "review" completed - two comments <nil>
}

// A run from its registration to the commit of the lease that told its end. What
// has been told is evicted now and then, outside the measurement.
func BenchmarkRegisterFinishLeaseCommit(b *testing.B) {
	var inbox notify.Queue
	tasks, err := task.Open(b.Context(), task.Config{Notify: &inbox})
	require.NoError(b, err)
	var told []task.ID
	b.ReportAllocs()
	for b.Loop() {
		h, _ := tasks.Register(b.Context(), task.Spec{Type: task.LocalBash, Description: "x"})
		h.Finish(task.Result{Status: task.Completed})
		inbox.Lease(notify.Later).Commit()
		if told = append(told, h.ID()); len(told) == 1000 {
			b.StopTimer()
			for _, id := range told {
				tasks.Evict(b.Context(), id)
			}
			told = told[:0]
			b.StartTimer()
		}
	}
	require.NoError(b, tasks.Close())
}
