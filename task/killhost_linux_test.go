package task_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
)

// busyHost makes the test binary, run again, a host that starts commands and
// tells of their ends without a pause, until it is killed.
const busyHost = "AFOOT_TASK_BUSY_HOST"

func actAsBusyHost(base string) error {
	ctx := context.Background()
	inbox := new(notify.Queue)
	sh := shell.New(shell.Config{Shell: "/bin/sh", Grace: 10 * time.Millisecond})
	tasks, err := task.Open(ctx, task.Config{Dir: base, Session: "busy", Notify: inbox, Kinds: []task.Kind{sh}})
	if err != nil {
		return err
	}
	fmt.Println("open")
	for i := 0; ; i++ {
		h, err := sh.Start(ctx, tasks, shell.Command{Script: fmt.Sprintf("echo %d; exit %d", i, i%2)})
		if err != nil {
			return err
		}
		fmt.Printf("known %s.1\n", h.ID())
		if i%3 == 0 {
			continue
		}
		news := inbox.Lease(notify.Later)
		for _, n := range news.Notifications() {
			fmt.Println("telling " + n.ID)
		}
		if err := news.Commit(); err != nil {
			return err
		}
		for _, n := range news.Notifications() {
			fmt.Println("told " + n.ID)
		}
	}
}

// A real host is killed at random moments, many times, and each end is told: not
// again once the host had committed it, and not never.
func TestKilledHostLosesNothing(t *testing.T) {
	rounds := 10
	if os.Getenv("AFOOT_FULL") != "" {
		rounds = 200
	}
	dir := base(t)
	known, told := map[string]bool{}, map[string]bool{}
	hear := func(line string) {
		verb, id, _ := strings.Cut(line, " ")
		switch verb {
		case "known":
			known[id] = true
		case "telling":
			require.False(t, told[id], "%s is told twice", id)
		case "told":
			told[id] = true
		}
	}
	for range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), busyHost+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan() && lines.Text() == "open", "the host says %q", lines.Text())
		for range rand.IntN(60) { // a random moment, in steps of what the host says
			if lines.Scan() {
				hear(lines.Text())
			}
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() { // what it had said by then
			hear(lines.Text())
		}
		cmd.Wait()
	}

	tasks, inbox := openAt(t, dir, "busy", shell.New(shell.Config{Grace: 10 * time.Millisecond}))
	for _, n := range drain(t, inbox) {
		require.False(t, told[n.ID], "%s is told twice", n.ID)
		told[n.ID] = true
	}
	for id := range known {
		h, err := tasks.Get(t.Context(), task.ID(strings.TrimSuffix(id, ".1")))
		require.NoError(t, err)
		require.True(t, h.State().Notified, "%s is lost", id)
		require.True(t, h.State().Status.Terminal())
	}
	t.Logf("%d hosts, %d tasks", rounds, len(known))
	require.NoError(t, tasks.Close())
}

// Ten thousand tasks are taken up in a moment.
func BenchmarkOpen(b *testing.B) {
	dir := base(b)
	tasks, _ := openAt(b, dir, "many")
	for range 10_000 {
		h, err := tasks.Register(b.Context(), task.Spec{Type: task.LocalBash, Description: "x"})
		require.NoError(b, err)
		require.NoError(b, h.Finish(task.Result{Status: task.Completed}))
	}
	tasks.Close()
	b.ReportAllocs()
	for b.Loop() {
		again, inbox := openAt(b, dir, "many")
		require.Len(b, inbox.Lease(notify.Later).Notifications(), 10_000)
		again.Close()
	}
}
