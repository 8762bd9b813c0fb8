package notifytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/afoot-go/afoot/notify"
)

// Run tests the sinks made by open against the promises of [notify.Sink] and,
// since they are seen through one, of [notify.Queue]. Each subtest opens one
// sink; open returns it with the queue in which its notifications without To
// arrive, both of them empty. A failure names the promise that was broken.
func Run(t *testing.T, open func(t *testing.T) (notify.Sink, *notify.Queue)) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			s, q := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), limit(t))
			defer cancel()
			if err := c.run(ctx, s, q); err != nil {
				t.Errorf("%v\nbroken promise: %s", err, c.promise)
			}
		})
	}
}

// A check is one promise and what shows that it is kept.
type check struct {
	name    string
	promise string
	run     func(context.Context, notify.Sink, *notify.Queue) error
}

var checks = []check{
	{"unread", "Push returns at once, whether or not anyone reads", unread},
	{"order", "every notification arrives once, in the order of the pushes", inOrder},
	{"whole", "a notification arrives as it was pushed", whole},
	{"duplicate pending", "a push whose ID is pending is ignored", duplicatePending},
	{"duplicate on lease", "a push whose ID is on lease is ignored", duplicateOnLease},
	{"empty ID", "a notification with an empty ID gets one of its own", emptyID},
	{"concurrent pushes", "pushes from many goroutines arrive each once", concurrentPushes},
	{"pushes during leases", "what is pushed while others lease arrives once", pushesDuringLeases},
	{"retract pending", "Retract of a pending one withdraws it, leaves the others in order and returns true", retractPending},
	{"retract then return", "one retracted on lease does not come again when the lease is returned", retractThenReturn},
	{"retract then lease", "one retracted on lease does not come again when another lease is taken", retractThenLease},
	{"retract unknown", "Retract of an ID that is neither pending nor on lease returns false", retractUnknown},
	{"priority", "a lease takes what is pending up to its priority", priority},
	{"return", "Return puts back in the same order, before what came since", returnKeepsOrder},
	{"commit", "what was committed does not come again, and its ID may be used again", commitForgets},
	{"told", "Told is called once, by Commit", toldOnce},
	{"stale", "a lease that was replaced answers ErrStale", staleLease},
	{"wait", "Wait wakes when there is something to lease", waitWakes},
}

// numbered returns n notifications with the IDs from, from+1, …
func numbered(from, n int) []notify.Notification {
	ns := make([]notify.Notification, n)
	for i := range ns {
		ns[i] = notify.Notification{ID: strconv.Itoa(from + i), Source: notify.UserAction}
	}
	return ns
}

func push(s notify.Sink, ns ...notify.Notification) {
	for _, n := range ns {
		s.Push(n)
	}
}

func ids(ns []notify.Notification) []string {
	ids := make([]string, len(ns))
	for i, n := range ns {
		ids[i] = n.ID
	}
	return ids
}

// want drains q and compares the IDs.
func want(q *notify.Queue, want ...string) error {
	ns, err := q.Drain(notify.Later)
	if err != nil {
		return err
	}
	if got := ids(ns); !slices.Equal(got, want) {
		return fmt.Errorf("got the IDs %q, want %q", got, want)
	}
	return nil
}

// wantRetract calls Retract and compares what it reports.
func wantRetract(s notify.Sink, id string, want bool) error {
	if got := s.Retract(id); got != want {
		return fmt.Errorf("Retract(%q) = %v, want %v", id, got, want)
	}
	return nil
}

func unread(ctx context.Context, s notify.Sink, q *notify.Queue) error {
	const many = 10_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		push(s, numbered(0, many)...)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return errors.New("a Push is still waiting")
	}
	return want(q, ids(numbered(0, many))...)
}

func inOrder(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(0, 20)...)
	s.Push(notify.Notification{ID: "later", Source: notify.Plan})
	push(s, numbered(20, 20)...)
	wanted := slices.Concat(ids(numbered(0, 20)), []string{"later"}, ids(numbered(20, 20)))
	if err := want(q, wanted...); err != nil {
		return err
	}
	return want(q)
}

func whole(_ context.Context, s notify.Sink, q *notify.Queue) error {
	slot := time.Date(2026, 4, 22, 9, 0, 0, 0, time.UTC)
	pushed := notify.Notification{
		ID: "1", Source: notify.ScheduledTask, TaskID: "b1", ToolUseID: "toolu_01", Status: "failed",
		Summary: "one", Result: "two\nthree", OutputFile: "/x", EntryID: "e", Command: "a <b",
		Slot: slot, Late: time.Second, Missed: 2, Folded: 3, Priority: notify.Later, Time: slot.Add(time.Second),
	}
	s.Push(pushed)
	ns, err := q.Drain(notify.Later)
	if err != nil {
		return err
	}
	if len(ns) != 1 {
		return fmt.Errorf("got %d notifications, want 1", len(ns))
	}
	if got, want := fmt.Sprintf("%+v", ns[0]), fmt.Sprintf("%+v", pushed); got != want {
		return fmt.Errorf("got  %s\nwant %s", got, want)
	}
	return nil
}

func duplicatePending(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 2)...)
	push(s, numbered(1, 1)...)
	return want(q, "1", "2")
}

func duplicateOnLease(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 2)...)
	l := q.Lease(notify.Later)
	push(s, numbered(1, 1)...)
	if err := l.Commit(); err != nil {
		return err
	}
	return want(q)
}

func emptyID(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, make([]notify.Notification, 3)...)
	ns, err := q.Drain(notify.Later)
	if err != nil {
		return err
	}
	got := ids(ns)
	slices.Sort(got)
	if len(slices.Compact(got)) != 3 || got[0] == "" {
		return fmt.Errorf("three pushes without an ID came with the IDs %q", ids(ns))
	}
	return nil
}

func concurrentPushes(_ context.Context, s notify.Sink, q *notify.Queue) error {
	const writers, each = 8, 100
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { push(s, numbered(w*each, each)...) })
	}
	wg.Wait()
	ns, err := q.Drain(notify.Later)
	if err != nil {
		return err
	}
	return eachOnce(ns, writers*each)
}

func pushesDuringLeases(ctx context.Context, s notify.Sink, q *notify.Queue) error {
	const writers, each = 4, 100
	var wg sync.WaitGroup
	defer wg.Wait()
	for w := range writers {
		wg.Go(func() { push(s, numbered(w*each, each)...) })
	}
	var all []notify.Notification
	for round := 0; len(all) < writers*each; round++ {
		if err := q.Wait(ctx, notify.Later); err != nil {
			return fmt.Errorf("after %d of %d: %w", len(all), writers*each, err)
		}
		l := q.Lease(notify.Later)
		if round%3 == 0 {
			l.Return()
			continue
		}
		all = append(all, l.Notifications()...)
		if err := l.Commit(); err != nil {
			return err
		}
	}
	return eachOnce(all, writers*each)
}

// eachOnce returns an error unless ns has each of the IDs 0 to n-1 once.
func eachOnce(ns []notify.Notification, n int) error {
	seen := make(map[string]int, n)
	for _, got := range ns {
		seen[got.ID]++
	}
	for i := range n {
		if times := seen[strconv.Itoa(i)]; times != 1 {
			return fmt.Errorf("ID %d came %d times", i, times)
		}
	}
	if len(ns) != n {
		return fmt.Errorf("%d notifications came, want %d", len(ns), n)
	}
	return nil
}

func retractPending(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 3)...)
	if err := wantRetract(s, "2", true); err != nil {
		return err
	}
	return want(q, "1", "3")
}

func retractThenReturn(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 3)...)
	l := q.Lease(notify.Later)
	if err := wantRetract(s, "2", true); err != nil {
		return err
	}
	if err := l.Return(); err != nil {
		return err
	}
	return want(q, "1", "3")
}

func retractThenLease(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 3)...)
	q.Lease(notify.Later)
	if err := wantRetract(s, "2", true); err != nil {
		return err
	}
	return want(q, "1", "3")
}

func retractUnknown(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 1)...)
	for _, id := range []string{"2", ""} {
		if err := wantRetract(s, id, false); err != nil {
			return err
		}
	}
	if err := want(q, "1"); err != nil {
		return err
	}
	return wantRetract(s, "1", false) // told
}

func priority(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s,
		notify.Notification{ID: "1", Priority: notify.Later},
		notify.Notification{ID: "2", Priority: notify.Next},
		notify.Notification{ID: "3", Priority: notify.Later})
	ns, err := q.Drain(notify.Next)
	if err != nil {
		return err
	}
	if got := ids(ns); !slices.Equal(got, []string{"2"}) {
		return fmt.Errorf("a lease of Next took the IDs %q, want only %q", got, "2")
	}
	return want(q, "1", "3")
}

func returnKeepsOrder(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 3)...)
	l := q.Lease(notify.Later, notify.Notification{ID: "extra"})
	push(s, numbered(4, 1)...)
	if err := l.Return(); err != nil {
		return err
	}
	return want(q, "1", "2", "3", "4")
}

func commitForgets(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 1)...)
	if err := want(q, "1"); err != nil {
		return err
	}
	if err := want(q); err != nil {
		return err
	}
	push(s, numbered(1, 1)...)
	return want(q, "1")
}

func toldOnce(_ context.Context, s notify.Sink, q *notify.Queue) error {
	told := 0
	s.Push(notify.Notification{ID: "1", Told: func() error { told++; return nil }})
	if err := q.Lease(notify.Later).Return(); err != nil {
		return err
	}
	if told != 0 {
		return errors.New("the Told was called without a Commit")
	}
	l := q.Lease(notify.Later)
	for range 2 {
		if err := l.Commit(); err != nil {
			return err
		}
	}
	if told != 1 {
		return fmt.Errorf("the Told was called %d times", told)
	}
	return nil
}

func staleLease(_ context.Context, s notify.Sink, q *notify.Queue) error {
	push(s, numbered(1, 2)...)
	first := q.Lease(notify.Later)
	second := q.Lease(notify.Later)
	for name, err := range map[string]error{"Commit": first.Commit(), "Return": first.Return()} {
		if !errors.Is(err, notify.ErrStale) {
			return fmt.Errorf("%s of a replaced lease returned %v", name, err)
		}
	}
	if got := ids(second.Notifications()); !slices.Equal(got, []string{"1", "2"}) {
		return fmt.Errorf("the second lease has the IDs %q", got)
	}
	return second.Commit()
}

func waitWakes(ctx context.Context, s notify.Sink, q *notify.Queue) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := q.Wait(ended, notify.Later); err == nil {
		return errors.New("a Wait returned nil for an empty queue")
	}
	woken := make(chan error, 1)
	go func() { woken <- q.Wait(ctx, notify.Next) }()
	push(s, numbered(1, 1)...)
	if err := <-woken; err != nil {
		return fmt.Errorf("a Wait returned %w after a push", err)
	}
	if err := q.Wait(ended, notify.Next); err != nil {
		return fmt.Errorf("a Wait returned %w though something is queued", err)
	}
	return want(q, "1")
}
