// Package notifytest helps to test code that pushes notifications, and checks
// sinks of one's own.
//
// [Next] takes the notifications of a queue one by one, as a test reads them.
// [Run] checks a [notify.Sink] against its promises.
package notifytest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/afoot-go/afoot/notify"
)

// patience is how long a test waits for what should come at once.
const patience = 10 * time.Second

// taking is held while Next takes, so that two calls don't take over each
// other's lease.
var taking sync.Mutex

// Next waits for the next notification of q, of whatever priority, and returns
// it, told. The others stay in the queue, in order. Next fails the test if none
// comes within 10 seconds, or before the test's own deadline, or if a hub has
// closed the queue, or if telling gives an error.
//
// It may be called from several goroutines, as far as t allows that, and inside
// a testing/synctest bubble. A lease that somebody has open is put back first,
// as by any other lease.
func Next(t testing.TB, q *notify.Queue) notify.Notification {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit(t))
	defer cancel()
	for {
		if err := q.Wait(ctx, notify.Later); err != nil {
			t.Fatalf("notifytest: no notification came: %v", err)
		}
		n, ok := takeFirst(q)
		if !ok {
			continue // somebody else took it
		}
		if n.Told == nil {
			return n
		}
		if err := n.Told(); err != nil {
			t.Fatalf("notifytest: tell %q: %v", n.ID, err)
		}
		return n
	}
}

// limit returns how long to wait: patience, or less if the test ends earlier.
func limit(t testing.TB) time.Duration {
	end, ok := deadline(t)
	if !ok {
		return patience
	}
	const margin = time.Second // for the message, before the deadline ends it all
	return min(patience, max(0, time.Until(end)-margin))
}

// deadline returns when t ends, if it has such a time.
func deadline(t testing.TB) (end time.Time, ok bool) {
	// Inside a synctest bubble Deadline panics: the test's clock is another.
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	d, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return end, false
	}
	return d.Deadline()
}

// takeFirst withdraws the first notification of q from a lease of everything
// and returns the rest.
func takeFirst(q *notify.Queue) (n notify.Notification, ok bool) {
	taking.Lock()
	defer taking.Unlock()
	l := q.Lease(notify.Later)
	defer l.Return()
	if l.Empty() {
		return n, false
	}
	n = l.Notifications()[0]
	return n, q.Retract(n.ID)
}
