package shell_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
)

// A command from its start to the commit of the lease that told its end, beside
// the same one run by os/exec alone, in the same shell, session and environment;
// with records in memory and in a directory. The three run in turn, so that all
// see the same machine; cpu is that of this process and its children, and the
// ratios are to os/exec.
func BenchmarkStartWait(b *testing.B) {
	env := os.Environ()
	memory := newStarter(b, env, "")
	directory := newStarter(b, env, b.TempDir())
	var cost [3]int64
	for b.Loop() {
		for i, run := range []func(){memory.run, directory.run, func() {
			cmd := exec.Command("/bin/sh", "-c", "true")
			cmd.Env = env
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			_, err := cmd.CombinedOutput()
			require.NoError(b, err)
		}} {
			began := cpu(b)
			run()
			cost[i] += cpu(b) - began
		}
	}
	b.ReportMetric(float64(cost[2])/float64(b.N), "exec-cpu-ns/op")
	b.ReportMetric(float64(cost[0])/float64(cost[2]), "memory-ratio")
	b.ReportMetric(float64(cost[1])/float64(cost[2]), "directory-ratio")
	require.NoError(b, memory.tasks.Close())
	require.NoError(b, directory.tasks.Close())
}

type starter struct {
	b     *testing.B
	sh    *shell.Shell
	tasks *task.Registry
	inbox *notify.Queue
}

func newStarter(b *testing.B, env []string, dir string) *starter {
	s := &starter{b: b, sh: shell.New(shell.Config{Shell: "/bin/sh", Env: env}), inbox: new(notify.Queue)}
	var err error
	s.tasks, err = task.Open(b.Context(), task.Config{Dir: dir, Notify: s.inbox, Kinds: []task.Kind{s.sh}})
	require.NoError(b, err)
	return s
}

// run is the whole life of a command.
func (s *starter) run() {
	h, err := s.sh.Start(s.b.Context(), s.tasks, shell.Command{Script: "true"})
	require.NoError(s.b, err)
	_, err = h.Wait(s.b.Context())
	require.NoError(s.b, err)
	require.NoError(s.b, s.inbox.Lease(notify.Later).Commit())
	require.NoError(s.b, s.tasks.Evict(s.b.Context(), h.ID()))
}
