package notifytest_test

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/notify/notifytest"
)

func TestRunQueue(t *testing.T) {
	notifytest.Run(t, func(*testing.T) (notify.Sink, *notify.Queue) {
		var q notify.Queue
		return &q, &q
	})
}

func TestRunHub(t *testing.T) {
	notifytest.Run(t, func(*testing.T) (notify.Sink, *notify.Queue) {
		var h notify.Hub
		return &h, h.Root()
	})
}

// The queue of an owner that was closed is a sink, too: its mail is its parent's.
func TestRunClosedOwner(t *testing.T) {
	notifytest.Run(t, func(t *testing.T) (notify.Sink, *notify.Queue) {
		var h notify.Hub
		q, err := h.Open("a", notify.Root)
		require.NoError(t, err)
		h.Close("a")
		return q, h.Root()
	})
}

// A brokenSink is a queue with a fault in front of it.
type brokenSink struct {
	*notify.Queue
	push    func(q *notify.Queue, n notify.Notification)
	retract func(q *notify.Queue, id string) bool
}

func (s *brokenSink) Push(n notify.Notification) {
	if s.push == nil {
		s.Queue.Push(n)
		return
	}
	s.push(s.Queue, n)
}

func (s *brokenSink) Retract(id string) bool {
	if s.retract == nil {
		return s.Queue.Retract(id)
	}
	return s.retract(s.Queue, id)
}

// faults are sinks broken on purpose, one fresh per call, and the promise that
// Run must name. The key is no more than a name for the child process.
var faults = map[string]struct {
	promise string
	sink    func(q *notify.Queue) *brokenSink
}{
	"blocks": {
		promise: "Push returns at once, whether or not anyone reads",
		sink: func(*notify.Queue) *brokenSink {
			full := make(chan notify.Notification, 1000)
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				full <- n
				q.Push(n)
			}}
		},
	},
	"swaps pairs": {
		promise: "every notification arrives once, in the order of the pushes",
		sink: func(*notify.Queue) *brokenSink {
			var kept *notify.Notification
			return &brokenSink{push: locked(func(q *notify.Queue, n notify.Notification) {
				if kept == nil {
					kept = &n
					return
				}
				q.Push(n)
				q.Push(*kept)
				kept = nil
			})}
		},
	},
	"forgets the result": {
		promise: "a notification arrives as it was pushed",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				n.Result = ""
				q.Push(n)
			}}
		},
	},
	"replaces duplicates": {
		promise: "a push whose ID is pending is ignored",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				q.Retract(n.ID)
				q.Push(n)
			}}
		},
	},
	"renames duplicates": {
		promise: "a push whose ID is on lease is ignored",
		sink: func(*notify.Queue) *brokenSink {
			seen := map[string]bool{}
			return &brokenSink{push: locked(func(q *notify.Queue, n notify.Notification) {
				if seen[n.ID] {
					n.ID += "'"
				}
				seen[n.ID] = true
				q.Push(n)
			})}
		},
	},
	"one ID for all without": {
		promise: "a notification with an empty ID gets one of its own",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				if n.ID == "" {
					n.ID = "none"
				}
				q.Push(n)
			}}
		},
	},
	"drops when busy": {
		promise: "pushes from many goroutines arrive each once",
		sink: func(*notify.Queue) *brokenSink {
			// The first 10 of the writers' last IDs stand for what a race would lose.
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				if !strings.HasPrefix(n.ID, "79") {
					q.Push(n)
				}
			}}
		},
	},
	"drops while others lease": {
		promise: "what is pushed while others lease arrives once",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				if n.ID != "399" {
					q.Push(n)
				}
			}}
		},
	},
	"retracts nothing": {
		promise: "Retract of a pending one withdraws it, leaves the others in order and returns true",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{retract: func(*notify.Queue, string) bool { return true }}
		},
	},
	"retracts only what is pending, for Return": {
		promise: "one retracted on lease does not come again when the lease is returned",
		sink:    retractsAgain,
	},
	"retracts only what is pending, for Lease": {
		promise: "one retracted on lease does not come again when another lease is taken",
		sink:    retractsAgain,
	},
	"retracts anything": {
		promise: "Retract of an ID that is neither pending nor on lease returns false",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{retract: func(q *notify.Queue, id string) bool { q.Retract(id); return true }}
		},
	},
	"urgent all": {
		promise: "a lease takes what is pending up to its priority",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				n.Priority = notify.Next
				q.Push(n)
			}}
		},
	},
	"takes the lease over": {
		promise: "Return puts back in the same order, before what came since",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				q.Lease(notify.Later)
				q.Push(n)
			}}
		},
	},
	"every ID only once": {
		promise: "what was committed does not come again, and its ID may be used again",
		sink: func(*notify.Queue) *brokenSink {
			seen := map[string]bool{}
			return &brokenSink{push: locked(func(q *notify.Queue, n notify.Notification) {
				if !seen[n.ID] {
					q.Push(n)
				}
				seen[n.ID] = true
			})}
		},
	},
	"tells twice": {
		promise: "Told is called once, by Commit",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				if told := n.Told; told != nil {
					n.Told = func() error { told(); return told() }
				}
				q.Push(n)
			}}
		},
	},
	"loses what came first": {
		promise: "a lease that was replaced answers ErrStale",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(q *notify.Queue, n notify.Notification) {
				q.Drain(notify.Later)
				q.Push(n)
			}}
		},
	},
	"never wakes": {
		promise: "Wait wakes when there is something to lease",
		sink: func(*notify.Queue) *brokenSink {
			return &brokenSink{push: func(*notify.Queue, notify.Notification) {}}
		},
	},
}

// locked makes a fault safe for use by many goroutines: it is to break one
// promise, not the race detector.
func locked(push func(*notify.Queue, notify.Notification)) func(*notify.Queue, notify.Notification) {
	var mu sync.Mutex
	return func(q *notify.Queue, n notify.Notification) {
		mu.Lock()
		defer mu.Unlock()
		push(q, n)
	}
}

// retractsAgain returns a sink that pushes anew, under another ID, what was
// retracted while it was not pending.
func retractsAgain(*notify.Queue) *brokenSink {
	return &brokenSink{retract: func(q *notify.Queue, id string) bool {
		l := q.Lease(notify.Later) // nothing is on another lease now
		defer l.Return()
		q.Push(notify.Notification{ID: id + "'", Source: notify.UserAction})
		return q.Retract(id)
	}}
}

const faultEnv = "NOTIFYTEST_FAULT"

// TestRunNamesBrokenPromise runs itself again in child processes, in which Run
// fails.
func TestRunNamesBrokenPromise(t *testing.T) {
	if name := os.Getenv(faultEnv); name != "" {
		notifytest.Run(t, func(*testing.T) (notify.Sink, *notify.Queue) {
			var q notify.Queue
			s := faults[name].sink(&q)
			s.Queue = &q
			return s, &q
		})
		return
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunNamesBrokenPromise$", "-test.timeout=2s")
			cmd.Env = append(os.Environ(), faultEnv+"="+name)
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed, "the child passed:\n%s", out)
			assert.Contains(t, string(out), "broken promise: "+fault.promise+"\n")
		})
	}
}
