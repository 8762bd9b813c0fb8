package notify

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Who is woken and finds the notification gone goes on waiting. Only the lock
// makes sure that it is gone before the waiter looks.
func TestWaitGoesRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- q.Wait(ctx, Next) }()
		synctest.Wait()

		q.mu.Lock()
		q.pushLocked(&Notification{ID: "b1"})
		q.removeLocked(q.held["b1"])
		q.mu.Unlock()
		require.ErrorIs(t, <-result, context.DeadlineExceeded)
	})
}

// A notification that arrives while the end of the context is being noticed
// wins. Only the lock makes sure that it arrives in between.
func TestWaitQueuedWinsOverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- q.Wait(ctx, Next) }()
		synctest.Wait()

		q.mu.Lock()
		cancel()
		q.pushLocked(&Notification{ID: "b1"})
		q.mu.Unlock()
		require.NoError(t, <-result)
	})
}

// What a queue keeps after everything was told can't be seen from outside.
func TestQueueForgetsWhatWasTold(t *testing.T) {
	var q Queue
	for range 1<<14 + 1 {
		q.Push(Notification{Source: Monitor, TaskID: "m1"})
		q.Push(Notification{Source: UserAction})
	}
	_, err := q.Drain(Later)
	require.NoError(t, err)
	require.Nil(t, q.held, "the map of a burst is dropped")
	require.Empty(t, q.latest)
	require.Zero(t, q.notices)
	require.Zero(t, q.pending)
	require.Nil(t, q.lease)
}

// A queue that is closed while the end of the context is being noticed says so.
// Only the lock makes sure that it is closed in between.
func TestWaitClosedWinsOverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var root, q Queue
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- q.Wait(ctx, Next) }()
		synctest.Wait()

		q.mu.Lock()
		cancel()
		q.heir = &root
		q.mu.Unlock()
		require.ErrorIs(t, <-result, ErrClosed)
	})
}
