package notifytest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/notify/notifytest"
)

func TestNextTakesOneInOrder(t *testing.T) {
	var q notify.Queue
	var told []string
	for i, p := range []notify.Priority{notify.Later, notify.Next, notify.Later, notify.Next} {
		id := strconv.Itoa(i)
		q.Push(notify.Notification{ID: id, Priority: p, Told: func() error { told = append(told, id); return nil }})
	}
	q.Push(notify.Notification{ID: "4"}) // without Told

	require.Equal(t, "0", notifytest.Next(t, &q).ID)
	require.Equal(t, "1", notifytest.Next(t, &q).ID)
	require.Equal(t, []string{"0", "1"}, told, "told, and the others are not")

	l := q.Lease(notify.Later)
	require.Len(t, l.Notifications(), 3)
	require.Equal(t, "2", l.Notifications()[0].ID)
	require.Equal(t, "2", notifytest.Next(t, &q).ID, "from an open lease")
	require.ErrorIs(t, l.Commit(), notify.ErrStale)

	require.Equal(t, "3", notifytest.Next(t, &q).ID)
	require.Equal(t, "4", notifytest.Next(t, &q).ID)
	require.True(t, q.Lease(notify.Later).Empty())
}

func TestNextWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q notify.Queue
		go func() {
			time.Sleep(9 * time.Second)
			q.Push(notify.Notification{ID: "1", Status: "completed"})
		}()
		require.Equal(t, "1", notifytest.Next(t, &q).ID)
	})
}

func TestNextFromManyGoroutines(t *testing.T) {
	const n = 100
	var q notify.Queue
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for i := range n {
		q.Push(notify.Notification{ID: strconv.Itoa(i)})
		wg.Go(func() {
			id := notifytest.Next(t, &q).ID
			mu.Lock()
			defer mu.Unlock()
			seen[id]++
		})
	}
	wg.Wait()
	require.Len(t, seen, n)
}

// A fakeT records how a test fails.
type fakeT struct {
	testing.TB
	ctx      context.Context
	deadline time.Time // zero if there is none
	failure  string
}

func (f *fakeT) Helper()                     {}
func (f *fakeT) Context() context.Context    { return f.ctx }
func (f *fakeT) Deadline() (time.Time, bool) { return f.deadline, !f.deadline.IsZero() }
func (f *fakeT) Fatalf(format string, args ...any) {
	f.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// nextOf runs Next to its end and returns how it failed and after how long.
func nextOf(f *fakeT, q *notify.Queue) (failure string, took time.Duration) {
	start := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		notifytest.Next(f, q)
	}()
	<-done
	return f.failure, time.Since(start)
}

func TestNextGivesUp(t *testing.T) {
	const timeout = "notifytest: no notification came: context deadline exceeded"
	tests := []struct {
		name    string
		prepare func(f *fakeT, q *notify.Queue)
		failure string
		took    time.Duration
	}{
		{"after 10 seconds", func(*fakeT, *notify.Queue) {}, timeout, 10 * time.Second},
		{"with a far deadline", func(f *fakeT, _ *notify.Queue) { f.deadline = time.Now().Add(time.Hour) }, timeout, 10 * time.Second},
		{"before the test's deadline", func(f *fakeT, _ *notify.Queue) { f.deadline = time.Now().Add(4 * time.Second) }, timeout, 3 * time.Second},
		{"past the test's deadline", func(f *fakeT, _ *notify.Queue) { f.deadline = time.Now().Add(-time.Hour) }, timeout, 0},
		{
			"when telling gives an error",
			func(_ *fakeT, q *notify.Queue) {
				q.Push(notify.Notification{ID: "1", Told: func() error { return errors.New("disk full") }})
			},
			`notifytest: tell "1": disk full`, 0,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q notify.Queue
				f := &fakeT{ctx: t.Context()}
				tt.prepare(f, &q)
				failure, took := nextOf(f, &q)
				require.Equal(t, tt.failure, failure)
				require.Equal(t, tt.took, took)
			})
		})
	}
}

func TestNextOfAClosedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h notify.Hub
		q, err := h.Open("a", notify.Root)
		require.NoError(t, err)
		go func() {
			time.Sleep(time.Second)
			h.Close("a")
		}()
		failure, took := nextOf(&fakeT{ctx: t.Context()}, q)
		require.Equal(t, "notifytest: no notification came: notify: queue closed", failure)
		require.Equal(t, time.Second, took)
	})
}
