package proc_test

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/leak"
	"github.com/afoot-go/afoot/internal/proc"
)

func TestMain(m *testing.M) { leak.Main(m) }

// start starts a shell script. What is left of its group is killed when the
// test is over.
func start(t *testing.T, script string) *proc.Process {
	t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	p, err := proc.Start(proc.Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Stdin: null})
	require.NoError(t, err)
	t.Cleanup(func() {
		p.KillGroup(0, nil)
		<-p.Exited()
		p.Output.Close()
		p.Close()
	})
	return p
}

func TestExit(t *testing.T) {
	for script, want := range map[string]proc.Exit{
		"exit 0":        {},
		"exit 7":        {Code: 7},
		"kill -9 $$":    {Code: -1, Signal: "SIGKILL"},
		"kill -SEGV $$": {Code: -1, Signal: "SIGSEGV"},
	} {
		p := start(t, script)
		<-p.Exited()
		require.Equal(t, want, p.Exit(), script)
		require.True(t, p.Ended())
		require.ErrorIs(t, syscall.Kill(p.Pid(), 0), syscall.ESRCH, "reaped")
		require.Empty(t, p.Group())
		require.Empty(t, p.KillGroup(0, nil), "of one that has ended")
	}
}

// A status that somebody else in this program took is unknown, never success. A
// host that ignores SIGCHLD makes the kernel itself that somebody.
func TestStolenStatus(t *testing.T) {
	signal.Ignore(syscall.SIGCHLD)
	defer signal.Notify(make(chan os.Signal, 1), syscall.SIGCHLD) // Reset would leave it ignored
	p := start(t, "exit 0")
	<-p.Exited()
	require.Equal(t, proc.Exit{Code: -1, Unknown: true}, p.Exit())
}

func TestOutputAndDescriptors(t *testing.T) {
	proc.MarkInherited() // what the caller of the tests left open is not theirs
	p := start(t, "echo out; echo err >&2; cat; ls /proc/self/fd")
	out, err := io.ReadAll(p.Output)
	require.NoError(t, err)
	require.Equal(t, "out\nerr\n0\n1\n2\n3\n", string(out), "3 is ls's own")
}

func TestStartErrors(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	before, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, spec := range []proc.Spec{
		{Path: "/no/such/program", Args: []string{"x"}, Stdin: null},
		{Path: "/bin/sh", Args: []string{"sh"}, Dir: "/no/such/dir", Stdin: null},
		{Path: "/etc/hostname", Args: []string{"x"}, Stdin: null},
	} {
		_, err := proc.Start(spec)
		require.Error(t, err)
	}
	after, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	require.Len(t, after, len(before), "no descriptor is left")
}

func TestGroupAndKill(t *testing.T) {
	p := start(t, "sleep 300 & sleep 300 & echo up; wait")
	readLine(t, p, "up\n")
	require.Len(t, p.Group(), 3)
	require.Contains(t, p.Group(), p.Pid())
	require.False(t, p.Ended())
	require.Empty(t, p.KillGroup(10*time.Second, nil))
	<-p.Exited()
	require.Equal(t, "SIGTERM", p.Exit().Signal)
	require.Empty(t, p.Group())
}

// The group outlives its leader, and is reached through the handle although the
// leader has been reaped.
func TestKillOfAGroupWithoutItsLeader(t *testing.T) {
	p := start(t, "trap '' TERM; sleep 300 & echo up")
	readLine(t, p, "up\n")
	<-p.Exited()
	require.Len(t, p.Group(), 1)
	began := time.Now()
	require.Empty(t, p.KillGroup(50*time.Millisecond, nil))
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond, "SIGTERM was ignored for the whole grace")
	require.Empty(t, p.Group())
}

func TestStoppedProcessActsOnTerm(t *testing.T) {
	p := start(t, "trap 'echo bye; exit 5' TERM; echo up; kill -STOP $$; sleep 300")
	readLine(t, p, "up\n")
	for !strings.Contains(status(t, p.Pid()), "(stopped)") {
	}
	require.Empty(t, p.KillGroup(10*time.Second, nil))
	<-p.Exited()
	require.Equal(t, proc.Exit{Code: 5}, p.Exit())
	readLine(t, p, "bye\n")
}

func status(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	return string(b)
}

// After Close nothing is signalled: there is no handle, and the number may be
// somebody else's.
func TestClosedHandle(t *testing.T) {
	p := start(t, "sleep 300 & echo up")
	readLine(t, p, "up\n")
	<-p.Exited()
	group := p.Group()
	require.Len(t, group, 1)
	require.NoError(t, p.Close())
	p.KillGroup(0, nil)
	require.NoError(t, syscall.Kill(group[0], 0), "still there")
	require.NoError(t, syscall.Kill(group[0], syscall.SIGKILL))
}

func readLine(t *testing.T, p *proc.Process, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	_, err := io.ReadFull(p.Output, buf)
	require.NoError(t, err)
	require.Equal(t, want, string(buf))
}
