package notify_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
)

func TestLeaseTakesByPriorityInOrder(t *testing.T) {
	push := func(q *notify.Queue) {
		for _, n := range []notify.Notification{done("1"), end("2"), done("3"), end("4"), end("5"), done("6")} {
			q.Push(n)
		}
	}
	tests := []struct {
		name string
		p    notify.Priority
		want []string
	}{
		{"zero is Next", 0, []string{"2", "4", "5"}},
		{"next", notify.Next, []string{"2", "4", "5"}},
		{"later takes all", notify.Later, []string{"1", "2", "3", "4", "5", "6"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var q notify.Queue
			push(&q)
			l := q.Lease(tt.p)
			require.Equal(t, tt.want, ids(l.Notifications()))
			require.NoError(t, l.Return())
			require.Equal(t, []string{"1", "2", "3", "4", "5", "6"}, drain(t, &q))
		})
	}
}

func TestEmptyLease(t *testing.T) {
	var q notify.Queue
	for name, l := range map[string]*notify.Lease{"of an empty queue": q.Lease(notify.Later), "zero": {}} {
		t.Run(name, func(t *testing.T) {
			require.True(t, l.Empty())
			require.Empty(t, l.Text())
			require.Empty(t, l.Notifications())
			require.NoError(t, l.Commit())
			require.NoError(t, l.Commit())
		})
	}
	require.NoError(t, new(notify.Lease).Return(), "zero")
}

func TestLeaseExtras(t *testing.T) {
	var q notify.Queue
	told := 0
	extra := notify.Notification{Source: notify.Progress, TaskID: "b7", Told: func() error { told++; return nil }}

	l := q.Lease(notify.Next, extra)
	require.False(t, l.Empty(), "extras alone, whatever their priority")
	require.NoError(t, l.Return())
	require.Zero(t, told)
	require.Empty(t, drain(t, &q), "Return drops the extras")

	q.Push(end("b1"))
	l = q.Lease(notify.Next, extra, extra)
	got := l.Notifications()
	require.Len(t, got, 3)
	require.Equal(t, "b1", got[0].TaskID)
	require.Equal(t, "b7", got[2].TaskID)
	require.NoError(t, l.Commit())
	require.Equal(t, 2, told, "Commit tells the extras")
}

func TestLeaseDoesNotContradictItself(t *testing.T) {
	about := func(source notify.Source, task, status string) notify.Notification {
		return notify.Notification{ID: string(source) + task + status, Source: source, TaskID: task, Status: status}
	}
	running := about(notify.Progress, "b1", "")
	tests := []struct {
		name   string
		queued []notify.Notification
		extras []notify.Notification
		want   []string // IDs
	}{
		{"killed", []notify.Notification{end("b1")}, []notify.Notification{running}, []string{"b1"}},
		{"with its source", []notify.Notification{about(notify.BackgroundTask, "b1", "killed")}, []notify.Notification{running}, []string{"background_taskb1killed"}},
		{"a stall", []notify.Notification{end("b1")}, []notify.Notification{about("", "b1", ""), about(notify.BackgroundTask, "b1", "")}, []string{"b1"}},
		{"others stay, in order", []notify.Notification{end("b1"), end("b3")}, []notify.Notification{
			about(notify.Progress, "b0", ""), running, about(notify.Progress, "b2", ""), about(notify.Progress, "b3", ""), about(notify.Progress, "b4", ""),
		}, []string{"b1", "b3", "progressb0", "progressb2", "progressb4"}},
		{"the end is an extra too", nil, []notify.Notification{running, end("b1")}, []string{"b1"}},
		{"nothing has ended", []notify.Notification{about("", "b1", "")}, []notify.Notification{running}, []string{"b1", "progressb1"}},
		{"the end waits for another lease", []notify.Notification{done("b1")}, []notify.Notification{running}, []string{"progressb1"}},
		{"a status of another source is no end", []notify.Notification{about(notify.Monitor, "b1", "failed")}, []notify.Notification{running}, []string{"monitorb1failed", "progressb1"}},
		{"an extra with a status", []notify.Notification{end("b1")}, []notify.Notification{about(notify.Progress, "b1", "failed")}, []string{"b1", "progressb1failed"}},
		{"no task", []notify.Notification{{ID: "1", Status: "failed"}}, []notify.Notification{about(notify.Progress, "", "")}, []string{"1", "progress"}},
		{"a user's word", []notify.Notification{end("b1")}, []notify.Notification{about(notify.UserAction, "b1", ""), about(notify.Monitor, "b1", "")}, []string{"b1", "user_actionb1", "monitorb1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var q notify.Queue
			var told []string
			tell := func(ns []notify.Notification) {
				for i := range ns {
					if ns[i].ID == "" {
						ns[i].ID = strconv.Itoa(i)
					}
					ns[i].Told = func() error { told = append(told, ns[i].ID); return nil }
				}
			}
			tell(tt.queued)
			tell(tt.extras)
			for _, n := range tt.queued {
				q.Push(n)
			}
			given := ids(tt.extras)
			l := q.Lease(notify.Next, tt.extras...)
			require.Equal(t, tt.want, ids(l.Notifications()))
			require.Equal(t, given, ids(tt.extras), "the caller's slice")
			parsed, err := notify.Parse(l.Text())
			require.NoError(t, err)
			require.Len(t, parsed, len(tt.want))
			require.NoError(t, l.Commit())
			require.Equal(t, tt.want, told, "no other Told is called")
		})
	}
}

// What was left out comes with a later lease if it is still so; what was
// retracted ends nothing.
func TestLeaseAgreesWithWhatItHoldsOnly(t *testing.T) {
	var q notify.Queue
	running := notify.Notification{ID: "new output", Source: notify.Progress, TaskID: "b1"}
	q.Push(end("b1"))
	l := q.Lease(notify.Next, running)
	require.Equal(t, []string{"b1"}, ids(l.Notifications()))
	require.True(t, q.Retract("b1"))
	require.Equal(t, []string{"new output"}, ids(q.Lease(notify.Next, running).Notifications()))
	require.False(t, new(notify.Queue).Lease(notify.Next, running).Empty())
}

func TestH17ReturnedLeaseComesAgain(t *testing.T) {
	var q notify.Queue
	want := []string{"1", "2", "3", "4"}
	for _, n := range []notify.Notification{done("1"), end("2"), done("3"), end("4")} {
		q.Push(n)
	}
	for range 3 {
		l := q.Lease(notify.Later)
		require.Equal(t, want, ids(l.Notifications()))
		require.NoError(t, l.Return()) // the call to the model failed
	}
	l := q.Lease(notify.Next)
	require.Equal(t, []string{"2", "4"}, ids(l.Notifications()))
	q.Push(end("5"))
	q.Push(done("6"))
	require.NoError(t, l.Return())
	l = q.Lease(notify.Later)
	q.Push(done("7"))
	q.Push(end("8"))
	require.NoError(t, l.Return())
	require.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8"}, drain(t, &q), "before what came since")
}

func TestCommitTwice(t *testing.T) {
	var q notify.Queue
	told := 0
	n := end("b1")
	n.Told = func() error { told++; return errors.New("disk full") }
	q.Push(n)
	l := q.Lease(notify.Next)
	require.EqualError(t, l.Commit(), `notify: tell "b1": disk full`)
	require.NoError(t, l.Commit())
	require.ErrorIs(t, l.Return(), notify.ErrStale, "Return after Commit")
	require.Equal(t, 1, told)
	require.Empty(t, drain(t, &q), "committed all the same")
}

func TestReturnTwice(t *testing.T) {
	var q notify.Queue
	n := end("b1")
	n.Told = func() error { t.Error("told"); return nil }
	q.Push(n)
	l := q.Lease(notify.Next)
	require.NoError(t, l.Return())
	require.NoError(t, l.Return())
	require.ErrorIs(t, l.Commit(), notify.ErrStale, "Commit after Return")
	require.True(t, q.Retract("b1"), "still queued, once")
	require.Empty(t, drain(t, &q))
}

func TestSecondLeasePutsFirstBack(t *testing.T) {
	var q notify.Queue
	q.Push(done("1"))
	q.Push(end("2"))
	first := q.Lease(notify.Later, notify.Notification{ID: "extra"})
	q.Push(end("3"))
	second := q.Lease(notify.Next)
	require.Equal(t, []string{"2", "3"}, ids(second.Notifications()))

	require.ErrorIs(t, first.Commit(), notify.ErrStale)
	require.ErrorIs(t, first.Return(), notify.ErrStale)
	require.ErrorIs(t, first.Commit(), notify.ErrStale, "and again")
	require.Equal(t, []string{"1", "2", "extra"}, ids(first.Notifications()), "its content never changes")

	require.NoError(t, second.Commit())
	require.Equal(t, []string{"1"}, drain(t, &q))
}

func TestCommitJoinsErrors(t *testing.T) {
	var q notify.Queue
	errA, errB := errors.New("a"), errors.New("b")
	var called []string
	for _, tt := range []struct {
		id  string
		err error
	}{{"1", errA}, {"2", nil}, {"3", errB}, {"4", nil}} {
		n := end(tt.id)
		n.Told = func() error { called = append(called, tt.id); return tt.err }
		q.Push(n)
	}
	q.Push(end("5")) // nothing to call
	err := q.Lease(notify.Next).Commit()
	require.ErrorIs(t, err, errA)
	require.ErrorIs(t, err, errB)
	require.Equal(t, []string{"1", "2", "3", "4"}, called, "all are called, in order")
}

func TestConcurrentCommitTellsOnce(t *testing.T) {
	var q notify.Queue
	var told atomic.Int32
	n := end("b1")
	n.Told = func() error { told.Add(1); return nil }
	q.Push(n)
	l := q.Lease(notify.Next)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { assert.NoError(t, l.Commit()) })
	}
	wg.Wait()
	require.EqualValues(t, 1, told.Load())
}

// What the caller gave or got does not reach into the queue.
func TestLeaseCopies(t *testing.T) {
	var q notify.Queue
	q.Push(end("b1"))
	extras := []notify.Notification{{ID: "extra"}}
	l := q.Lease(notify.Next, extras...)
	extras[0].ID = "changed"
	got := l.Notifications()
	got[0].ID = "changed"
	require.Equal(t, []string{"b1", "extra"}, ids(l.Notifications()))
	require.NoError(t, l.Return())
	require.Equal(t, []string{"b1"}, drain(t, &q))
}

func TestDeferredReturnIsHarmless(t *testing.T) {
	var q notify.Queue
	q.Push(end("b1"))
	func() {
		l := q.Lease(notify.Next)
		defer l.Return()
		require.NoError(t, l.Commit())
	}()
	require.Empty(t, drain(t, &q))
}
