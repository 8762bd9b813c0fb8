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
// the same one run by os/exec alone, in the same shell, session and environment.
// The two run in turn, so that both see the same machine; cpu is that of this
// process and its children, and ratio is ours to theirs.
func BenchmarkStartWait(b *testing.B) {
	env := os.Environ()
	var inbox notify.Queue
	sh := shell.New(shell.Config{Shell: "/bin/sh", Env: env})
	tasks, err := task.Open(b.Context(), task.Config{Notify: &inbox, Kinds: []task.Kind{sh}})
	require.NoError(b, err)

	var ours, theirs int64
	for b.Loop() {
		began := cpu(b)
		h, err := sh.Start(b.Context(), tasks, shell.Command{Script: "true"})
		require.NoError(b, err)
		_, err = h.Wait(b.Context())
		require.NoError(b, err)
		require.NoError(b, inbox.Lease(notify.Later).Commit())
		require.NoError(b, tasks.Evict(b.Context(), h.ID()))
		between := cpu(b)

		cmd := exec.Command("/bin/sh", "-c", "true")
		cmd.Env = env
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_, err = cmd.CombinedOutput()
		require.NoError(b, err)
		ours, theirs = ours+between-began, theirs+cpu(b)-between
	}
	b.ReportMetric(float64(ours)/float64(b.N), "ours-cpu-ns/op")
	b.ReportMetric(float64(theirs)/float64(b.N), "exec-cpu-ns/op")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio")
	require.NoError(b, tasks.Close())
}
