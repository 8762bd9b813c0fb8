package notify_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
)

func ids(ns []notify.Notification) []string {
	ids := []string{}
	for _, n := range ns {
		ids = append(ids, n.ID)
	}
	return ids
}

// drain takes everything and returns the IDs.
func drain(t *testing.T, q *notify.Queue) []string {
	t.Helper()
	ns, err := q.Drain(notify.Later)
	require.NoError(t, err)
	return ids(ns)
}

// end is what a task that failed pushes.
func end(id string) notify.Notification {
	return notify.Notification{ID: id, TaskID: id, Status: "failed", Summary: id}
}

// done is what a task that completed pushes.
func done(id string) notify.Notification {
	return notify.Notification{ID: id, TaskID: id, Status: "completed", Summary: id}
}

func TestH03SimultaneousEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q notify.Queue
		want := []string{}
		var wg sync.WaitGroup
		for i := range 50 {
			id := "b" + strconv.Itoa(i)
			want = append(want, id)
			wg.Go(func() {
				time.Sleep(10 * time.Millisecond) // all wake at the same instant
				q.Push(done(id))
			})
		}
		require.NoError(t, q.Wait(t.Context(), notify.Later))
		wg.Wait()
		require.ElementsMatch(t, want, drain(t, &q))
	})
}

func TestH04PushesDuringLeases(t *testing.T) {
	const writers, each = 10, 100
	var q notify.Queue
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				q.Push(notify.Notification{ID: strconv.Itoa(w*each + i), Status: []string{"failed", "completed"}[i%2]})
			}
		})
	}
	times := map[string]int{}
	for got := 0; got < writers*each; {
		require.NoError(t, q.Wait(t.Context(), notify.Later))
		l := q.Lease(notify.Later)
		for _, n := range l.Notifications() {
			times[n.ID]++
			got++
		}
		require.NoError(t, l.Commit())
	}
	wg.Wait()
	require.Empty(t, drain(t, &q))
	require.Len(t, times, writers*each)
	for id, n := range times {
		require.Equal(t, 1, n, "ID %s", id)
	}
}

// A host that is busy when it is woken loses nothing: what it did not commit
// wakes it again.
func TestH06BusyHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q notify.Queue
		go func() {
			time.Sleep(100 * time.Millisecond)
			q.Push(end("b1"))
		}()
		busyUntil := time.Now().Add(300 * time.Millisecond)
		var told []string
		for len(told) == 0 {
			require.NoError(t, q.Wait(t.Context(), notify.Next), "Wait wakes again until the notice is told")
			l := q.Lease(notify.Next)
			require.Equal(t, []string{"b1"}, ids(l.Notifications()))
			if time.Now().Before(busyUntil) {
				require.NoError(t, l.Return())
				time.Sleep(50 * time.Millisecond)
				continue
			}
			told = append(told, ids(l.Notifications())...)
			require.NoError(t, l.Commit())
		}
		require.Equal(t, []string{"b1"}, told)
		require.Empty(t, drain(t, &q))
	})
}

func TestH15UserMessageInSameTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q notify.Queue
		go q.Push(notify.Notification{Source: notify.Progress, TaskID: "b1", Result: "40 %"})
		go q.Push(notify.Notification{Source: notify.UserAction, Summary: "stop & think <now>"})
		synctest.Wait()

		l := q.Lease(notify.Later)
		sources := map[notify.Source]notify.Notification{}
		for _, n := range l.Notifications() {
			sources[n.Source] = n
		}
		require.Len(t, sources, 2)
		require.Equal(t, "stop & think <now>", sources[notify.UserAction].Summary)

		told, err := notify.Parse(l.Text())
		require.NoError(t, err)
		require.Len(t, told, 2)
	})
}

func TestPushIgnoresHeldIDs(t *testing.T) {
	var q notify.Queue
	q.Push(end("b1"))
	again := end("b1")
	again.Summary = "changed"
	q.Push(again)

	l := q.Lease(notify.Later)
	require.Equal(t, []string{"b1"}, ids(l.Notifications()))
	require.Equal(t, "b1", l.Notifications()[0].Summary, "the first stays as it was")
	q.Push(again)
	require.NoError(t, l.Commit())
	require.Empty(t, drain(t, &q), "one on lease is ignored too")

	q.Push(again)
	require.Equal(t, []string{"b1"}, drain(t, &q), "told, the ID is forgotten")
}

func TestPushFillsEmptyID(t *testing.T) {
	var q notify.Queue
	for range 100 {
		q.Push(notify.Notification{Summary: "same"})
	}
	seen := map[string]bool{"": true}
	for _, id := range drain(t, &q) {
		require.False(t, seen[id], "ID %q", id)
		seen[id] = true
	}
	require.Len(t, seen, 101)
}

func TestRetract(t *testing.T) {
	var q notify.Queue
	require.False(t, q.Retract("b1"), "empty queue")
	for _, id := range []string{"b1", "b2", "b3", "b4"} {
		q.Push(end(id))
	}
	require.True(t, q.Retract("b1"), "first")
	require.True(t, q.Retract("b3"), "in the middle")
	require.True(t, q.Retract("b4"), "last")
	require.False(t, q.Retract("b4"), "twice")
	require.False(t, q.Retract(""), "no ID")
	q.Push(end("b1"))
	require.Equal(t, []string{"b2", "b1"}, drain(t, &q))
	require.False(t, q.Retract("b2"), "told")
}

func TestRetractOnLease(t *testing.T) {
	tests := []struct {
		name string
		end  func(q *notify.Queue, l *notify.Lease)
		want []string // left in the queue
		told int      // by then
	}{
		{"returned", func(_ *notify.Queue, l *notify.Lease) { l.Return() }, []string{"b1", "b3"}, 0},
		{"replaced", func(q *notify.Queue, _ *notify.Lease) { q.Lease(notify.Next) }, []string{"b1", "b3"}, 0},
		{"committed", func(_ *notify.Queue, l *notify.Lease) { l.Commit() }, []string{}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var q notify.Queue
			told := 0
			for _, id := range []string{"b1", "b2", "b3"} {
				n := end(id)
				n.Told = func() error { told++; return nil }
				q.Push(n)
			}
			l := q.Lease(notify.Later)
			require.True(t, q.Retract("b2"))
			require.True(t, q.Retract("b2"), "still on lease")
			tt.end(&q, l)
			require.Equal(t, tt.told, told)
			require.False(t, q.Retract("b2"))
			require.Equal(t, tt.want, drain(t, &q))

			q.Push(end("b2"))
			require.Equal(t, []string{"b2"}, drain(t, &q), "the ID is forgotten")
		})
	}
}

func TestDrainTellsAndReturns(t *testing.T) {
	var q notify.Queue
	n := done("b1")
	n.Told = func() error { return context.DeadlineExceeded }
	q.Push(n)
	q.Push(end("b2"))

	ns, err := q.Drain(notify.Next)
	require.NoError(t, err)
	require.Equal(t, []string{"b2"}, ids(ns))

	ns, err = q.Drain(notify.Later)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, []string{"b1"}, ids(ns), "returned whatever the error")
	require.Empty(t, drain(t, &q), "and told")
}

func TestWaitForPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q notify.Queue
		var woken []string
		wait := func(name string, p notify.Priority) {
			assert.NoError(t, q.Wait(t.Context(), p))
			woken = append(woken, name) // ordered by synctest.Wait
		}
		go wait("zero is Next", 0)
		synctest.Wait()
		q.Push(done("b1"))
		synctest.Wait()
		require.Empty(t, woken, "a completed task does not wake who waits for Next")
		go wait("later", notify.Later)
		synctest.Wait()
		require.Equal(t, []string{"later"}, woken)
		q.Push(end("b2"))
		synctest.Wait()
		require.Equal(t, []string{"later", "zero is Next"}, woken)
	})
}

func TestWaitWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q notify.Queue
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() { assert.NoError(t, q.Wait(t.Context(), notify.Priority(i))) })
		}
		synctest.Wait()
		q.Push(end("b1"))
		wg.Wait()
	})
}

func TestWaitCountsOpenLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var q notify.Queue
		q.Push(done("b1"))
		q.Push(end("b2"))
		l := q.Lease(notify.Later)
		require.NoError(t, q.Wait(ended, notify.Next), "b2 is on lease")
		q.Retract("b2")
		require.ErrorIs(t, q.Wait(ended, notify.Next), context.Canceled, "b2 will not come again")
		require.NoError(t, q.Wait(ended, notify.Later), "b1 is on lease")
		require.NoError(t, l.Commit())
		require.ErrorIs(t, q.Wait(ended, notify.Later), context.Canceled)
	})
}

func TestWaitEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q notify.Queue
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, q.Wait(ctx, notify.Next), context.DeadlineExceeded)
		q.Push(done("b1"))
		require.ErrorIs(t, q.Wait(ctx, notify.Next), context.DeadlineExceeded)
		require.NoError(t, q.Wait(ctx, notify.Later), "a queued notification wins over an ended context")
		require.Equal(t, []string{"b1"}, drain(t, &q), "Wait takes nothing")
	})
}

// A consumer that blocks or panics in Told keeps nobody else from the queue,
// and what it did not get to comes again.
func TestBad121ConsumerBlocksOrPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q notify.Queue
		release := make(chan struct{})
		n := end("b1")
		n.Told = func() error { <-release; return nil }
		q.Push(n)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, q.Lease(notify.Next).Commit()) })
		synctest.Wait()

		n = end("b2")
		n.Told = func() error { panic("consumer") }
		q.Push(n)
		require.PanicsWithValue(t, "consumer", func() { q.Lease(notify.Next).Commit() })

		q.Push(end("b3"))
		require.Equal(t, []string{"b3"}, drain(t, &q))
		close(release)
		wg.Wait()
	})
}

// Told runs without a lock, so it may use the queue.
func TestToldMayUseQueue(t *testing.T) {
	var q notify.Queue
	n := end("b1")
	n.Told = func() error { q.Push(end("b2")); return nil }
	q.Push(n)
	require.Equal(t, []string{"b1"}, drain(t, &q))
	require.Equal(t, []string{"b2"}, drain(t, &q))
}
