package tasktest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/leak"
	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/tasktest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// conduct names, in a child process, the test that is to fail there.
const conduct = "AFOOT_TASKTEST_CONDUCT"

// failing runs a test of this binary in a child with a conduct that makes it
// fail, and returns what it printed.
func failing(t *testing.T, test, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+test, "-test.v")
	cmd.Env = append(os.Environ(), conduct+"="+name, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the child should fail; it printed:\n%s", out)
	return string(out)
}

func TestFakeKeepsThePromises(t *testing.T) {
	tasktest.Run(t, func(t *testing.T) task.Task {
		tasks, inbox := tasktest.Open(t)
		t.Cleanup(func() { inbox.Drain(notify.Later) })
		return tasktest.NewFake(t, tasks, task.Spec{})
	})
}

func TestFunctionKeepsThePromises(t *testing.T) {
	tasktest.Run(t, func(t *testing.T) task.Task {
		tasks, inbox := tasktest.Open(t)
		t.Cleanup(func() { inbox.Drain(notify.Later) })
		h, err := tasks.Go(t.Context(), task.Spec{}, func(ctx context.Context, _ *task.Run) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		require.NoError(t, err)
		return h
	})
}

// broken is a task that breaks one promise.
type broken struct {
	how   string
	calls atomic.Int32
	state task.State
}

func (b *broken) Kill(ctx context.Context) error {
	first := b.calls.Add(1) == 1
	switch b.how {
	case "refuses":
		return errors.New("no")
	case "fails when ended":
		if !first {
			return errors.New("already ended")
		}
	case "does not stop":
		b.state.Status = task.Running
	case "one at a time":
		if !first {
			return errors.New("busy")
		}
	case "invents an error":
		if ctx.Err() != nil {
			return errors.New("timeout")
		}
	case "ignores its context":
		time.Sleep(1500 * time.Millisecond) // what it does instead of returning
	case "panics":
		panic("kill")
	case "hangs":
		select {}
	}
	return nil
}

// statefulBroken has a state to look at.
type statefulBroken struct{ *broken }

func (s statefulBroken) State() task.State { return s.state }

// lazy is killed only by a call whose context lasts.
type lazy struct{ *task.Handle }

func (l lazy) Kill(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.Handle.Kill(ctx)
}

func TestBrokenTask(t *testing.T) {
	how := os.Getenv(conduct)
	if how == "" {
		return // it runs in a child of TestRunNamesTheBrokenPromise
	}
	tasktest.Run(t, func(t *testing.T) task.Task {
		switch b := (&broken{how: how}); how {
		case "does not stop":
			return statefulBroken{b}
		case "does not go on stopping":
			tasks, inbox := tasktest.Open(t)
			t.Cleanup(func() { inbox.Drain(notify.Later) })
			return lazy{tasktest.NewFake(t, tasks, task.Spec{}).Handle}
		default:
			return b
		}
	})
}

func TestRunNamesTheBrokenPromise(t *testing.T) {
	for how, promise := range map[string]string{
		"refuses":                 "When Kill returns nil the task has stopped.",
		"does not stop":           "When Kill returns nil the task has stopped.",
		"panics":                  "When Kill returns nil the task has stopped.",
		"hangs":                   "Kill never waits for anyone to read the task's output.",
		"fails when ended":        "Killing a task that has already ended returns nil.",
		"one at a time":           "Of any number of concurrent calls each returns as one alone would.",
		"invents an error":        "If ctx ends first, Kill returns ctx.Err() and the task goes on stopping in the background; Kill may be called again.",
		"ignores its context":     "If ctx ends first, Kill returns ctx.Err() and the task goes on stopping in the background; Kill may be called again.",
		"does not go on stopping": "If ctx ends first, Kill returns ctx.Err() and the task goes on stopping in the background; Kill may be called again.",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			test := "^TestBrokenTask$"
			if how == "hangs" { // each check would wait out its limit
				test += "/unread"
			}
			require.Contains(t, failing(t, test, how), "broken promise: "+promise)
		})
	}
}

func TestOpenFailsOverWhatIsLeft(t *testing.T) {
	switch os.Getenv(conduct) {
	case "":
		require.Regexp(t, `x\w{8} "left running" was running: killed \(host closed\)`, failing(t, "^"+t.Name()+"$", "running"))
		require.Regexp(t, `x\w{8} "never told" not told: completed`, failing(t, "^"+t.Name()+"$", "untold"))
	case "running":
		tasks, _ := tasktest.Open(t)
		tasktest.NewFake(t, tasks, task.Spec{Description: "left running"})
	case "untold":
		tasks, _ := tasktest.Open(t)
		tasktest.NewFake(t, tasks, task.Spec{Description: "never told"}).End(task.Result{Status: task.Completed})
	}
}

func TestFakeFailsTheTest(t *testing.T) {
	if os.Getenv(conduct) == "" {
		out := failing(t, "^"+t.Name()+"$", "misuse")
		for _, want := range []string{"Print to", "End of", "already ended"} {
			require.Contains(t, out, want)
		}
		return
	}
	tasks, inbox := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.End(task.Result{Status: task.Completed})
	f.Print("late")
	f.End(task.Result{Status: task.Failed})
	inbox.Drain(notify.Later)
}

func TestFakeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks, inbox := tasktest.Open(t)
		f := tasktest.NewFake(t, tasks, task.Spec{Description: "ssh"})
		go func() {
			time.Sleep(time.Hour)
			f.Print(strings.Repeat("x", 600) + "Password: ")
			f.Stall()
			time.Sleep(time.Hour)
			f.End(task.Result{Status: task.Completed})
		}()
		require.NoError(t, inbox.Wait(t.Context(), notify.Next))
		stall, err := inbox.Drain(notify.Later)
		require.NoError(t, err)
		require.Equal(t, `Background task "ssh" seems to wait for input`, stall[0].Summary)
		require.Equal(t, strings.Repeat("x", 502)+"Password: ", stall[0].Result)
		require.True(t, f.State().Stalled)
		_, err = f.Take(t.Context())
		require.NoError(t, err)
	})
}
