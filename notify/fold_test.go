package notify_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
)

// line is the i-th notice of a monitor task.
func line(task string, i int) notify.Notification {
	return notify.Notification{
		ID: fmt.Sprintf("%s#%d", task, i), Source: notify.Monitor, TaskID: task, Summary: fmt.Sprint("line ", i),
	}
}

func pushLines(q *notify.Queue, task string, from, to int) {
	for i := from; i <= to; i++ {
		q.Push(line(task, i))
	}
}

// drainAll takes everything.
func drainAll(t *testing.T, q *notify.Queue) []notify.Notification {
	t.Helper()
	ns, err := q.Drain(notify.Later)
	require.NoError(t, err)
	return ns
}

// standFor counts the notices that ns stand for, themselves included.
func standFor(ns []notify.Notification) int {
	sum := 0
	for _, n := range ns {
		sum += 1 + n.Folded
	}
	return sum
}

func TestFoldPastLimit(t *testing.T) {
	var q notify.Queue
	pushLines(&q, "m1", 1, notify.FoldAfter+1)
	ns := drainAll(t, &q)
	require.Len(t, ns, notify.FoldAfter+1, "nothing folds before more than FoldAfter are pending")
	require.Equal(t, len(ns), standFor(ns))

	pushLines(&q, "m1", 1, notify.FoldAfter+1)
	q.Push(end("b1"))
	pushLines(&q, "m1", notify.FoldAfter+2, notify.FoldAfter+50)
	ns = drainAll(t, &q)
	require.Len(t, ns, notify.FoldAfter+2)
	require.Equal(t, notify.FoldAfter+51, standFor(ns))

	last := ns[len(ns)-1]
	require.Equal(t, "line 150", last.Summary, "the last one stays, at the end")
	require.Equal(t, 49, last.Folded)
	require.Contains(t, last.Text(), "<folded>49</folded>")
	require.Equal(t, "line 100", ns[len(ns)-3].Summary, "the earlier ones stay where they were")
	require.Equal(t, "b1", ns[len(ns)-2].ID)
}

func TestFoldAddsUp(t *testing.T) {
	var q notify.Queue
	pushLines(&q, "m1", 1, notify.FoldAfter+1)
	n := line("m1", notify.FoldAfter+10)
	n.Folded = 8 // the monitor's own
	q.Push(n)
	ns := drainAll(t, &q)
	require.Equal(t, 9, ns[len(ns)-1].Folded)
}

func TestFoldedIDIsForgotten(t *testing.T) {
	var q notify.Queue
	pushLines(&q, "m1", 1, notify.FoldAfter+2)
	require.False(t, q.Retract(line("m1", notify.FoldAfter+1).ID))
	require.True(t, q.Retract(line("m1", notify.FoldAfter+2).ID))
}

// After the latest notice of a task was retracted, the one before it is the
// one to be replaced.
func TestFoldAfterRetract(t *testing.T) {
	var q notify.Queue
	pushLines(&q, "m1", 1, 3)
	pushLines(&q, "m2", 1, notify.FoldAfter)
	require.True(t, q.Retract("m1#3"))
	q.Push(line("m3", 1)) // FoldAfter again, and one more
	q.Push(line("m1", 4))
	ns := drainAll(t, &q)
	require.Equal(t, "m1#1", ns[0].ID)
	require.Equal(t, "m2#1", ns[1].ID, "m1#2 was replaced")
	require.Equal(t, "m1#4", ns[len(ns)-1].ID)
	require.Equal(t, 1, ns[len(ns)-1].Folded)
}

func TestFoldOnlyWithinStream(t *testing.T) {
	told := func() error { return nil }
	tests := []struct {
		name  string
		n     notify.Notification
		folds bool
	}{
		{"same task", notify.Notification{Source: notify.Monitor, TaskID: "m1"}, true},
		{"another task", notify.Notification{Source: notify.Monitor, TaskID: "m2"}, false},
		{"another source", notify.Notification{Source: notify.Progress, TaskID: "m1", Priority: notify.Next}, false},
		{"another priority", notify.Notification{Source: notify.Monitor, TaskID: "m1", Priority: notify.Later}, false},
		{"to be told", notify.Notification{Source: notify.Monitor, TaskID: "m1", Told: told}, false},
		{"with a status", notify.Notification{Source: notify.Monitor, TaskID: "m1", Status: "failed"}, false},
		{"end", notify.Notification{TaskID: "m1", Status: "completed"}, false},
		{"stall", notify.Notification{TaskID: "m1"}, false},
		{"fire", notify.Notification{Source: notify.ScheduledTask, TaskID: "m1"}, false},
		{"user action", notify.Notification{Source: notify.UserAction, TaskID: "m1"}, false},
		{"nudge", notify.Notification{Source: notify.Plan, TaskID: "m1"}, false},
		{"unknown source", notify.Notification{Source: "doorbell", TaskID: "m1"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var q notify.Queue
			pushLines(&q, "m1", 1, notify.FoldAfter+1)
			q.Push(tt.n)
			ns := drainAll(t, &q)
			require.Equal(t, tt.folds, len(ns) == notify.FoldAfter+1, "%d left", len(ns))
			require.Equal(t, tt.folds, ns[len(ns)-1].Folded == 1)
		})
	}
}

// What has a Told stays even if what comes after it could fold.
func TestFoldLeavesOneToBeTold(t *testing.T) {
	var q notify.Queue
	told := line("m1", 0)
	told.Told = func() error { return nil }
	q.Push(told)
	pushLines(&q, "m2", 1, notify.FoldAfter+1)
	q.Push(line("m1", 1))
	require.Len(t, drainAll(t, &q), notify.FoldAfter+3)
}

func TestFoldWithoutTask(t *testing.T) {
	var q notify.Queue
	for range 2 * notify.FoldAfter {
		q.Push(notify.Notification{Source: notify.Progress})
	}
	ns := drainAll(t, &q)
	require.Len(t, ns, notify.FoldAfter+1)
	require.Equal(t, 2*notify.FoldAfter, standFor(ns))
}

// A host whose calls keep failing returns lease after lease.
func TestFoldOnReturn(t *testing.T) {
	var q notify.Queue
	const rounds, each = 50, 100
	for r := range rounds {
		l := q.Lease(notify.Later)
		pushLines(&q, "m1", r*each+1, (r+1)*each)
		if r%2 == 0 {
			require.NoError(t, l.Return())
		} // else the next Lease puts it back
	}
	ns := drainAll(t, &q)
	require.LessOrEqual(t, len(ns), 2*notify.FoldAfter)
	require.Equal(t, rounds*each, standFor(ns), "none is lost")
	require.Equal(t, fmt.Sprint("line ", rounds*each), ns[len(ns)-1].Summary)
	before := 0
	for _, n := range ns {
		var i int
		_, err := fmt.Sscanf(n.Summary, "line %d", &i)
		require.NoError(t, err)
		require.Greater(t, i, before, "in order")
		before = i
	}
}

// Putting back alone folds nothing: the same items come again.
func TestReturnAloneFoldsNothing(t *testing.T) {
	var q notify.Queue
	pushLines(&q, "m1", 1, 2)
	for range 2 {
		q.Push(notify.Notification{Source: notify.Progress, TaskID: "p1"})
	}
	for i := range 2 * notify.FoldAfter {
		q.Push(line(fmt.Sprint("other", i), 1))
	}
	q.Push(line("m1", 3))
	q.Push(line("m2", 1))
	var want []string
	for _, p := range []notify.Priority{notify.Later, notify.Next, notify.Later} {
		l := q.Lease(p)
		if want == nil {
			want = ids(l.Notifications())
		}
		require.NoError(t, l.Return())
	}
	require.Equal(t, want, drain(t, &q))
}

func TestMillionNoticesInBoundedMemory(t *testing.T) {
	million := 1_000_000
	if testing.Short() {
		million /= 10
	}
	var q notify.Queue
	before := heap()
	n := notify.Notification{Source: notify.Monitor, TaskID: "m1", Summary: "again"}
	for range million {
		q.Push(n)
	}
	require.Less(t, heap()-before, int64(1<<20), "bytes")
	ns := drainAll(t, &q)
	require.Len(t, ns, notify.FoldAfter+1)
	require.Equal(t, million, standFor(ns))
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
