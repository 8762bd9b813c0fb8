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

// mustOpen opens an owner's queue.
func mustOpen(t *testing.T, h *notify.Hub, owner, parent notify.Owner) *notify.Queue {
	t.Helper()
	q, err := h.Open(owner, parent)
	require.NoError(t, err)
	return q
}

// to is what a task of owner pushes when it fails.
func to(owner notify.Owner, id string) notify.Notification {
	n := end(id)
	n.To = owner
	return n
}

func TestHubRoutesByOwner(t *testing.T) {
	var h notify.Hub
	a := mustOpen(t, &h, "a", notify.Root)
	b := mustOpen(t, &h, "a.b", "a")
	h.Push(to(notify.Root, "1"))
	h.Push(to("a", "2"))
	h.Push(to("a.b", "3"))
	h.Push(to("nobody", "4"))
	require.Equal(t, []string{"1", "4"}, drain(t, h.Root()), "an unknown owner's goes to the root")
	require.Equal(t, []string{"2"}, drain(t, a))
	require.Equal(t, []string{"3"}, drain(t, b))
}

func TestHubOpenErrors(t *testing.T) {
	var h notify.Hub
	mustOpen(t, &h, "a", notify.Root)
	mustOpen(t, &h, "a.b", "a")
	mustOpen(t, &h, "a.b.c", "a.b")
	h.Close("a.b.c")
	h.Close("a")
	tests := []struct {
		name          string
		owner, parent notify.Owner
		want          string
	}{
		{"the root", notify.Root, notify.Root, "notify: the root is always open"},
		{"already open", "a.b", notify.Root, `notify: owner "a.b" already open`},
		{"unknown parent", "c", "nobody", `notify: parent "nobody" of owner "c" not open`},
		{"closed parent", "c", "a", `notify: parent "a" of owner "c" not open`},
		{"closed parent with an open one", "c", "a.b.c", `notify: parent "a.b.c" of owner "c" not open`},
		{"its own parent", "c", "c", `notify: parent "c" of owner "c" not open`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := h.Open(tt.owner, tt.parent)
			require.EqualError(t, err, tt.want)
			require.Nil(t, q)
		})
	}
}

func TestHubCloseSendsMailToParent(t *testing.T) {
	var h notify.Hub
	a := mustOpen(t, &h, "a", notify.Root)
	b := mustOpen(t, &h, "a.b", "a")
	h.Push(to("a", "1"))
	for _, id := range []string{"2", "3", "4"} {
		n := to("a.b", id)
		if id == "3" {
			n.Priority = notify.Later
		}
		h.Push(n)
	}
	h.Close("a.b")
	h.Push(to("a.b", "5"))
	b.Push(end("6"))
	require.Empty(t, drain(t, b))
	require.Equal(t, []string{"1", "2", "3", "4", "5", "6"}, drain(t, a))
}

func TestHubCloseWalksUp(t *testing.T) {
	var h notify.Hub
	mustOpen(t, &h, "a", notify.Root)
	b := mustOpen(t, &h, "a.b", "a")
	mustOpen(t, &h, "a.b.c", "a.b")
	h.Push(to("a.b.c", "1"))
	h.Close("a.b.c")
	h.Close("a") // the middle stays open
	require.Equal(t, []string{"1"}, drain(t, b))
	h.Push(to("a.b.c", "2"))
	h.Push(to("a", "3"))
	require.Equal(t, []string{"2"}, drain(t, b), "nearest open ancestor")
	require.Equal(t, []string{"3"}, drain(t, h.Root()))
	h.Push(to("a.b.c", "4"))
	h.Close("a.b")
	h.Push(to("a.b.c", "5"))
	require.Equal(t, []string{"4", "5"}, drain(t, h.Root()), "grandparent")
}

func TestHubCloseTwiceOrUnknown(t *testing.T) {
	var h notify.Hub
	h.Close("nobody")
	h.Close(notify.Root)
	mustOpen(t, &h, "a", notify.Root)
	mustOpen(t, &h, "a.b", "a")
	h.Close("a.b")
	h.Close("a.b")
	h.Push(to("a.b", "1"))
	h.Push(to(notify.Root, "2"))
	require.Equal(t, []string{"2"}, drain(t, h.Root()))
	h.Close("a")
	h.Close("a")
	require.Equal(t, []string{"1"}, drain(t, h.Root()))
}

func TestHubCloseWithOpenLease(t *testing.T) {
	tests := []struct {
		name string
		end  func(q *notify.Queue, l *notify.Lease) error
		want []string // in the parent's queue
	}{
		{"returned", func(_ *notify.Queue, l *notify.Lease) error { return l.Return() }, []string{"3", "1"}},
		{"replaced", func(q *notify.Queue, _ *notify.Lease) error { q.Lease(notify.Later); return nil }, []string{"3", "1"}},
		{"committed", func(_ *notify.Queue, l *notify.Lease) error { return l.Commit() }, []string{"3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h notify.Hub
			a := mustOpen(t, &h, "a", notify.Root)
			told := 0
			for _, id := range []string{"1", "2"} {
				n := to("a", id)
				n.Told = func() error { told++; return nil }
				h.Push(n)
			}
			l := a.Lease(notify.Next)
			h.Push(to("a", "3"))
			h.Close("a")
			require.True(t, h.Retract("2"), "on lease of a closed queue")
			a.Push(to("a", "1")) // on lease, so ignored
			require.NoError(t, tt.end(a, l))
			require.Equal(t, tt.want, drain(t, h.Root()))
			require.Equal(t, map[bool]int{true: 2, false: 1}[tt.name == "committed"], told)
			require.Empty(t, drain(t, a))
		})
	}
}

func TestHubReopen(t *testing.T) {
	var h notify.Hub
	old := mustOpen(t, &h, "a", notify.Root)
	h.Push(to("a", "1"))
	l := old.Lease(notify.Next)
	h.Close("a")
	again := mustOpen(t, &h, "a", notify.Root)
	h.Push(to("a", "2"))
	require.True(t, h.Retract("1"), "on lease of the former queue")
	old.Push(end("3"))
	require.NoError(t, l.Return())
	require.Equal(t, []string{"2"}, drain(t, again))
	require.Equal(t, []string{"3"}, drain(t, h.Root()), "what was left behind stays with the ancestors")
}

func TestHubRetract(t *testing.T) {
	var h notify.Hub
	require.False(t, h.Retract("1"))
	a := mustOpen(t, &h, "a", notify.Root)
	h.Push(to(notify.Root, "1"))
	h.Push(to("a", "2"))
	h.Push(to("a", "3"))
	require.True(t, h.Retract("1"))
	require.True(t, h.Retract("2"))
	require.False(t, h.Retract("2"))
	require.Empty(t, drain(t, h.Root()))
	require.Equal(t, []string{"3"}, drain(t, a))

	h.Push(to("a", "4"))
	h.Close("a")
	require.True(t, a.Retract("4"), "by the closed queue that it was pushed to")
	require.Empty(t, drain(t, h.Root()))
}

// Closing wakes who waits for the parent and who waits for the closed queue.
func TestHubCloseWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h notify.Hub
		a := mustOpen(t, &h, "a", notify.Root)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, h.Root().Wait(t.Context(), notify.Next)) })
		b := mustOpen(t, &h, "b", notify.Root)
		for _, p := range []notify.Priority{notify.Next, notify.Later, notify.Next} {
			wg.Go(func() { assert.ErrorIs(t, b.Wait(t.Context(), p), notify.ErrClosed) })
		}
		a.Push(end("1"))
		synctest.Wait()
		begin := time.Now()
		h.Close("a")
		h.Close("b")
		wg.Wait()
		require.Zero(t, time.Since(begin), "at once")
		require.Equal(t, []string{"1"}, drain(t, h.Root()))
	})
}

func TestWaitOfClosedQueue(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"context goes on": t.Context(), "context ended": ended} {
		t.Run(name, func(t *testing.T) {
			var h notify.Hub
			a := mustOpen(t, &h, "a", notify.Root)
			a.Push(end("1"))
			a.Push(done("2"))
			l := a.Lease(notify.Later)
			a.Push(end("3"))
			h.Close("a")
			require.NoError(t, a.Wait(ctx, notify.Next), "1 is on lease")
			require.True(t, h.Retract("1"))
			require.ErrorIs(t, a.Wait(ctx, notify.Next), notify.ErrClosed, "1 does not come again, nor anything else")
			require.NoError(t, a.Wait(ctx, notify.Later), "2 is on lease")
			require.True(t, a.Lease(notify.Later).Empty(), "put back, it goes to the root")
			require.ErrorIs(t, l.Commit(), notify.ErrStale)
			require.ErrorIs(t, a.Wait(ctx, notify.Later), notify.ErrClosed)
			a.Push(end("4"))
			require.ErrorIs(t, a.Wait(ctx, notify.Later), notify.ErrClosed, "what is pushed goes to the root")
			require.Equal(t, []string{"3", "2", "4"}, drain(t, h.Root()))

			again := mustOpen(t, &h, "a", notify.Root)
			again.Push(end("5"))
			require.NoError(t, again.Wait(ctx, notify.Next), "the new queue")
			require.ErrorIs(t, a.Wait(ctx, notify.Next), notify.ErrClosed, "the old one")
		})
	}
}

// Mail is never lost, however closing, pushing and leasing meet.
func TestHubConcurrentClose(t *testing.T) {
	const owners, each = 8, 50
	var h notify.Hub
	parent := notify.Root
	var names []notify.Owner
	for i := range owners {
		name := notify.Owner("a" + strconv.Itoa(i))
		mustOpen(t, &h, name, parent)
		names, parent = append(names, name), name
	}
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() {
			for i := range each {
				h.Push(to(name, string(name)+"."+strconv.Itoa(i)))
			}
		})
		wg.Go(func() { h.Close(name) })
		wg.Go(func() { h.Retract("nothing") })
	}
	wg.Wait()
	got := drain(t, h.Root())
	seen := map[string]bool{}
	for _, id := range got {
		seen[id] = true
	}
	require.Len(t, got, owners*each)
	require.Len(t, seen, owners*each)
}
