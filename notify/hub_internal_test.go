package notify

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a hub keeps of closed owners, and whom it asks, can't be seen from
// outside.

func mustOpen(t *testing.T, h *Hub, owner, parent Owner) *Queue {
	t.Helper()
	q, err := h.Open(owner, parent)
	require.NoError(t, err)
	return q
}

// requireKnown compares the numbers of open and closed owners that h knows, and
// of queues that hold something, and checks that it can find its way.
func requireKnown(t *testing.T, h *Hub, open, closed, holding int) {
	t.Helper()
	require.Len(t, h.open, open, "open")
	require.Len(t, h.closed, closed, "closed")
	require.Len(t, h.holding, holding, "holding")
	wards := 0
	for _, b := range h.open {
		require.NotNil(t, b.queue)
		for ward := range b.wards {
			require.Same(t, b, h.closed[ward].nearest(), "ward %q", ward)
		}
		wards += len(b.wards)
	}
	require.Equal(t, closed, wards, "wards")
}

func TestHubForgetsClosedOwnersBelowRoot(t *testing.T) {
	var h Hub
	for i := range 20_000 {
		owner := Owner(fmt.Sprint("a", i))
		mustOpen(t, &h, owner, Root).Push(Notification{})
		mustOpen(t, &h, owner+".b", owner)
		h.Close(owner + ".b")
		requireSmall(t, &h, 1, 1)
		h.Close(owner)
		requireSmall(t, &h, 0, 0)
	}
	requireKnown(t, &h, 0, 0, 0)
	require.Equal(t, 20_000, h.root.pending[0].n)
}

// requireSmall compares sizes only.
func requireSmall(t *testing.T, h *Hub, open, closed int) {
	t.Helper()
	if len(h.open) != open || len(h.closed) != closed {
		t.Fatalf("%d open and %d closed, want %d and %d", len(h.open), len(h.closed), open, closed)
	}
}

func TestHubShrinksClosedOwnersBelowAnother(t *testing.T) {
	var h Hub
	const many = 20_000
	main := mustOpen(t, &h, "main", Root)
	owner := func(i int) Owner { return Owner(fmt.Sprint("main.", i)) }
	for i := range many {
		mustOpen(t, &h, owner(i), "main")
		h.Close(owner(i))
	}
	requireKnown(t, &h, 1, many, 0)
	require.False(t, h.Retract("1"))
	for _, b := range h.closed {
		require.Same(t, main, b.queue, "a name and where its mail goes is all that is kept")
	}

	h.Push(Notification{ID: "1", To: owner(7)})
	requireKnown(t, &h, 1, many, 1)
	require.True(t, h.Retract("1"), "it went to main")
	requireKnown(t, &h, 1, many, 0)

	h.Close("main")
	requireKnown(t, &h, 0, 0, 0)
}

func TestHubReopeningKeepsNothing(t *testing.T) {
	var h Hub
	mustOpen(t, &h, "main", Root)
	for range 20_000 {
		mustOpen(t, &h, "main.a", "main")
		h.Close("main.a")
	}
	requireKnown(t, &h, 1, 1, 0)
	mustOpen(t, &h, "main.a", "main")
	requireKnown(t, &h, 2, 0, 0)
	h.Close("main")
	requireKnown(t, &h, 1, 0, 0)
	h.Close("main.a")
	requireKnown(t, &h, 0, 0, 0)
}

// Whichever end of a chain of owners is closed first, each keeps one entry, and
// only while one above it is open.
func TestHubChain(t *testing.T) {
	const depth = 5_000
	owner := func(i int) Owner { return Owner(fmt.Sprint("a", i)) }
	chain := func(h *Hub) {
		parent := Root
		for i := range depth {
			mustOpen(t, h, owner(i), parent)
			parent = owner(i)
		}
	}
	t.Run("leaf first", func(t *testing.T) {
		var h Hub
		chain(&h)
		for i := depth - 1; i > 0; i-- {
			h.Close(owner(i))
		}
		requireKnown(t, &h, 1, depth-1, 0)
		h.Push(Notification{ID: "1", To: owner(depth - 1)})
		require.Contains(t, h.open[owner(0)].queue.held, "1")
		h.Close(owner(0))
		requireKnown(t, &h, 0, 0, 0)
	})
	t.Run("top first", func(t *testing.T) {
		var h Hub
		chain(&h)
		for i := range depth {
			h.Close(owner(i))
			requireSmall(t, &h, depth-1-i, 0)
		}
	})
}

func TestHubReopenedInBetween(t *testing.T) {
	var h Hub
	mustOpen(t, &h, "main", Root)
	mustOpen(t, &h, "a", "main")
	mustOpen(t, &h, "a.b", "a")
	h.Close("a.b")
	h.Close("a")
	requireKnown(t, &h, 1, 2, 0)
	again := mustOpen(t, &h, "a", "main")
	requireKnown(t, &h, 2, 1, 0)
	h.Push(Notification{ID: "1", To: "a.b"})
	require.NotContains(t, again.held, "1", "what a left behind stays with main")
	require.Contains(t, h.open["main"].queue.held, "1")
	mustOpen(t, &h, "a.b", "a") // now a child of the new a
	h.Close("main")
	requireKnown(t, &h, 2, 0, 0)
	h.Close("a.b")
	requireKnown(t, &h, 1, 1, 0)
	h.Close("a")
	requireKnown(t, &h, 0, 0, 0)
}

// Retract asks the queues that hold something, and no others.
func TestHubAsksOnlyWhoHoldsSomething(t *testing.T) {
	var h Hub
	queues := make([]*Queue, 1000)
	for i := range queues {
		queues[i] = mustOpen(t, &h, Owner(fmt.Sprint("a", i)), Root)
	}
	requireKnown(t, &h, 1000, 0, 0)
	q := queues[500]
	push := func(id string) { q.Push(Notification{ID: id, Source: Monitor}) }
	push("1")
	push("2")
	requireKnown(t, &h, 1000, 0, 1)
	require.True(t, h.Retract("1"))
	requireKnown(t, &h, 1000, 0, 1)
	require.True(t, h.Retract("2"))
	requireKnown(t, &h, 1000, 0, 0)

	push("1")
	l := q.Lease(Later)
	requireKnown(t, &h, 1000, 0, 1)
	require.NoError(t, l.Commit())
	requireKnown(t, &h, 1000, 0, 0)

	push("1")
	l = q.Lease(Later)
	require.True(t, h.Retract("1"))
	requireKnown(t, &h, 1000, 0, 1)
	require.NoError(t, l.Return())
	requireKnown(t, &h, 1000, 0, 0)

	for i := range FoldAfter + 10 {
		push(fmt.Sprint(i))
	}
	_, err := q.Drain(Later)
	require.NoError(t, err)
	requireKnown(t, &h, 1000, 0, 0)

	push("1")
	l = q.Lease(Later)
	push("2")
	h.Close("a500")
	requireKnown(t, &h, 999, 0, 1)
	require.NoError(t, l.Return())
	requireKnown(t, &h, 999, 0, 0)
	require.True(t, h.Retract("1"))
	require.True(t, h.Retract("2"))
}

// A notification on its way up is never between two queues: the list of those
// that hold something is never empty.
func TestHubHoldsWhatGoesUp(t *testing.T) {
	for range 2000 {
		var h Hub
		mustOpen(t, &h, "a", Root)
		b := mustOpen(t, &h, "a.b", "a")
		b.Push(Notification{ID: "1"})
		l := b.Lease(Next)
		h.Close("a.b")
		returned := make(chan error, 1)
		go func() { returned <- l.Return() }()
		for len(returned) == 0 {
			h.holdingMu.Lock()
			n := len(h.holding)
			h.holdingMu.Unlock()
			require.Positive(t, n, "queues that hold something")
		}
		require.NoError(t, <-returned)
	}
}

// Nor is one missed that reaches the root while Retract is looking for it.
func TestHubRetractDuringReturn(t *testing.T) {
	for i := range 20_000 {
		var h Hub
		a := mustOpen(t, &h, "a", Root)
		a.Push(Notification{ID: "1"})
		l := a.Lease(Next)
		h.Close("a")
		returned, start := make(chan error, 1), make(chan struct{})
		go func() {
			<-start
			returned <- l.Return()
		}()
		close(start)
		for range i % 512 { // so that the two meet now and then
			runtime.KeepAlive(l)
		}
		if !h.Retract("1") {
			t.Fatal("before or after, it is somewhere")
		}
		require.NoError(t, <-returned)
	}
}
