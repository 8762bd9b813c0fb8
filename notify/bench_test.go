package notify_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/afoot-go/afoot/notify"
)

// BenchmarkPushDrain moves 4096 notifications per round: 1 or 8 goroutines push
// them while another waits, leases and commits. Beside it a plain buffered
// channel does the same; it has no IDs, no priorities and no way back.
func BenchmarkPushDrain(b *testing.B) {
	transports := []struct {
		name string
		open func() (push func(notify.Notification), drain func() int)
	}{
		{"queue", openQueue},
		{"chan", openChan},
	}
	for _, tr := range transports {
		for _, writers := range []int{1, 8} {
			b.Run(tr.name+"/"+strconv.Itoa(writers), func(b *testing.B) {
				push, drain := tr.open()
				b.ReportAllocs()
				for b.Loop() {
					pushDrain(writers, push, drain)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(benchIDs)), "ns/notification")
			})
		}
	}
}

var benchIDs = func() (ids [4096]string) {
	for i := range ids {
		ids[i] = "b7x0k2m9q." + strconv.Itoa(i)
	}
	return ids
}()

// pushDrain is one round: as many as there are benchIDs go in and come out.
func pushDrain(writers int, push func(notify.Notification), drain func() int) {
	var wg sync.WaitGroup
	share := len(benchIDs) / writers
	for w := range writers {
		wg.Go(func() {
			for _, id := range benchIDs[w*share : (w+1)*share] {
				push(notify.Notification{ID: id, Source: notify.UserAction, Summary: "done"})
			}
		})
	}
	for got := 0; got < len(benchIDs); {
		got += drain()
	}
	wg.Wait()
}

func openQueue() (func(notify.Notification), func() int) {
	var q notify.Queue
	return q.Push, func() int {
		if err := q.Wait(context.Background(), notify.Later); err != nil {
			panic(err)
		}
		l := q.Lease(notify.Later)
		n := len(l.Notifications())
		if err := l.Commit(); err != nil {
			panic(err)
		}
		return n
	}
}

func openChan() (func(notify.Notification), func() int) {
	c := make(chan notify.Notification, len(benchIDs))
	return func(n notify.Notification) { c <- n }, func() int { <-c; return 1 }
}
