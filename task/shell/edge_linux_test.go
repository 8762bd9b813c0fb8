package shell_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
)

// The edges of a command's life, each with what its documentation says.

func TestRunWhoseDeadlinePasses(t *testing.T) {
	b := open(t, shell.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
	defer cancel()
	res, err := b.sh.Run(ctx, b.tasks, shell.Command{Script: "sleep 30", SetEnv: []string{b.mark}}, time.Hour)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, res.Backgrounded)
	require.Equal(t, task.Killed, res.State.Status)
	require.Empty(t, b.marked())
	require.Empty(t, b.told())
}

// A task that is killed before its command has begun leaves neither a process
// nor an end that nobody is told of.
func TestKilledWhileStarting(t *testing.T) {
	b := open(t, shell.Config{Shell: "/bin/sh"})
	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	events := b.tasks.Watch(ctx)
	killer.Go(func() {
		for ev := range events {
			if ev.State.Status == task.Pending {
				b.tasks.Kill(context.Background(), ev.State.ID)
			}
		}
	})
	early := 0
	for i := range 200 {
		cmd := shell.Command{Script: "sleep 300", SetEnv: []string{b.mark}}
		var err error
		if i%2 == 0 {
			_, err = b.sh.Run(t.Context(), b.tasks, cmd, 0)
		} else {
			var h *task.Handle
			if h, err = b.sh.Start(t.Context(), b.tasks, cmd); err == nil {
				b.wait(h)
			}
		}
		if err != nil {
			require.ErrorIs(t, err, task.ErrEnded)
			early++
		}
	}
	stop()
	killer.Wait()
	t.Logf("%d of 200 killed before they had begun", early)
	require.Empty(t, b.marked())
	b.told()
	require.True(t, b.tasks.Idle(task.Root), "every end has been told")
}

// Told when all of it is gone, not only its leader.
func TestD12KilledMeansTheWholeGroup(t *testing.T) {
	b := open(t, shell.Config{Grace: 300 * ms})
	h := b.script("sh -c \"trap '' TERM; echo up; while :; do sleep 0.05; done\" & wait")
	b.line(h, "up")
	go h.Kill(context.Background())
	ctx, cancel := timeout(t)
	defer cancel()
	require.NoError(t, b.inbox.Wait(ctx, notify.Later))
	require.Empty(t, b.marked())
	require.Empty(t, h.State().Descendants)
	require.Equal(t, "killed", b.told()[0].Status)
}

// A command that had ended when the kill came was not killed, also if its end is
// still to be told.
func TestKillBetweenEndAndTelling(t *testing.T) {
	b := open(t, shell.Config{})
	h := b.script("sleep 30 & echo $!; exit 0")
	pid := data(t, h.State()).PID
	for syscall.Kill(pid, 0) == nil { // the leader is reaped, its output is waited for
	}
	require.NoError(t, h.Kill(t.Context()))
	st := h.State()
	require.Equal(t, task.Completed, st.Status)
	require.Empty(t, b.marked())
	require.Len(t, b.told(), 1)
}

func TestFollowEndsWithTheLastWriter(t *testing.T) {
	b := open(t, shell.Config{})
	b.tellAll()
	h := b.script("setsid sh -c 'sleep 0.4; echo late' & echo early")
	b.wait(h)
	require.NoError(t, h.Kill(t.Context()), "of a command that has ended")
	ctx, cancel := timeout(t)
	defer cancel()
	got, err := io.ReadAll(h.Output().Follow(ctx, 0))
	require.NoError(t, err)
	require.Equal(t, "early\nlate\n", string(got), "what it goes on to print is still kept")
}

// How long an end waits for its output, as the package documentation has it.
func TestEndIsToldSoon(t *testing.T) {
	for script, limit := range map[string]time.Duration{
		"sleep 30 & echo up": 350 * ms, // 100 ms without a byte
		"(while :; do echo x; sleep 0.05; done) & echo up": 2 * time.Second, // 500 ms in all
	} {
		b := open(t, shell.Config{Shell: "/bin/sh"})
		b.tellAll()
		best := time.Hour
		for range 3 { // the machine may be busy for one of them
			st := b.run(script)
			best = min(best, st.Ended.Sub(st.Started))
			_, err := b.tasks.Kill(t.Context(), st.ID)
			require.NoError(t, err)
		}
		require.Less(t, best, limit, script)
	}
}

func TestGraceOfTheConfig(t *testing.T) {
	b := open(t, shell.Config{Grace: 50 * ms})
	b.tellAll()
	h := b.script("trap '' TERM; echo up; while :; do sleep 0.01; done")
	b.line(h, "up")
	began := time.Now()
	require.NoError(t, h.Kill(t.Context()))
	require.Less(t, time.Since(began), shell.DefaultGrace)
}

// A limit on the time of a command is over when the command is.
func TestTimeLimitEndsWithTheCommand(t *testing.T) {
	b := open(t, shell.Config{})
	b.tellAll()
	h := b.start(shell.Command{Script: "sleep 300 & exit 0", TimeLimit: 300 * ms})
	st := b.wait(h)
	select {
	case <-time.After(600*ms - time.Since(st.Started)):
	case <-t.Context().Done():
	}
	require.Equal(t, st.Status, h.State().Status)
	require.Len(t, b.marked(), 1, "what it left is not its run")
	require.NoError(t, h.Kill(t.Context()))
}

func TestSessionAndMark(t *testing.T) {
	b := open(t, shell.Config{})
	b.tellAll()
	h := b.script("env | grep ^AFOOT_TASK_; cut -d' ' -f6 /proc/$$/stat")
	st := b.wait(h)
	d := data(t, st)
	require.Equal(t, fmt.Sprintf("AFOOT_TASK_%s=1\n%d\n", h.ID(), d.PID), text(t, h), "it leads a session of its own")
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(boot)), d.Boot)
	require.Positive(t, d.Start)
}

// An exit status that somebody else took is unknown, and never success.
func TestUnknownExit(t *testing.T) {
	signal.Ignore(syscall.SIGCHLD)
	defer signal.Notify(make(chan os.Signal, 1), syscall.SIGCHLD)
	b := open(t, shell.Config{})
	st := b.run("exit 0")
	require.Equal(t, task.Failed, st.Status)
	require.Equal(t, &task.Exit{Code: -1, Unknown: true}, st.Exit)
	require.Contains(t, st.Error, "exit status unknown")
	require.Equal(t, `Background command "exit 0" failed (exit code unknown)`, b.told()[0].Summary)
}

func TestKilledLeftoversGiveTheirDescriptorsBack(t *testing.T) {
	b := open(t, shell.Config{})
	b.tellAll()
	before := descriptors(t) + 1 // /dev/null stays open from the first command on
	h := b.script("sleep 300 >/dev/null 2>&1 & :")
	b.wait(h)
	require.Greater(t, descriptors(t), before, "the handle of its group")
	require.NoError(t, h.Kill(t.Context()))
	for deadline := time.Now().Add(patience); descriptors(t) > before && time.Now().Before(deadline); {
	}
	require.Equal(t, before, descriptors(t))
}

// Close is bounded also where a command outlasts the limit.
func TestCloseLimitBelowTheGrace(t *testing.T) {
	sh := shell.New(shell.Config{Grace: 500 * ms})
	tasks, err := task.Open(t.Context(), task.Config{Kinds: []task.Kind{sh}, CloseLimit: 50 * ms})
	require.NoError(t, err)
	b := &bench{T: t, sh: sh, tasks: tasks, mark: "AFOOT_TEST_MARK=close"}
	h := b.script("trap '' TERM; echo up; while :; do sleep 0.01; done")
	b.line(h, "up")
	var closed *task.CloseError
	require.ErrorAs(t, tasks.Close(), &closed)
	require.Equal(t, task.HostClosed, closed.Killed[0].Reason)
	require.Equal(t, "SIGKILL", closed.Killed[0].Exit.Signal, "by force, when the time was over")
	require.Empty(t, b.marked())
}

// What a command left may end by itself; then nothing is kept for it.
func TestDescendantsThatEnd(t *testing.T) {
	b := open(t, shell.Config{})
	before := descriptors(t) + 1 // /dev/null stays open from the first command on
	flag := t.TempDir() + "/go"
	h := b.script("(until test -e " + flag + "; do sleep 0.02; done) >/dev/null 2>&1 & true")
	require.NotEmpty(t, b.wait(h).Descendants)
	b.told()
	require.ErrorIs(t, b.tasks.Evict(t.Context(), h.ID()), task.ErrInUse)
	events := b.tasks.Watch(t.Context())
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	for ev := range events {
		if len(ev.State.Descendants) == 0 {
			break
		}
	}
	for deadline := time.Now().Add(patience); descriptors(t) > before && time.Now().Before(deadline); {
	}
	require.Equal(t, before, descriptors(t))
	require.NoError(t, b.tasks.Evict(t.Context(), h.ID()))
}

// Evicting a task does not kill a process outside its group that still prints.
func TestEvictionLeavesWritersAlone(t *testing.T) {
	b := open(t, shell.Config{})
	flag := t.TempDir() + "/go"
	done := flag + ".done"
	h := b.script("setsid sh -c 'until test -e " + flag + "; do sleep 0.02; done; echo a; echo b; touch " + done + "' & true")
	b.wait(h)
	b.told()
	require.NoError(t, b.tasks.Evict(t.Context(), h.ID()))
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if _, err := os.Stat(done); err == nil {
			return
		}
	}
	t.Fatal("the writer was killed by its pipe")
}

// The shell and a program are what the host means, wherever the command runs.
func TestProgramsAreNotFoundInTheProject(t *testing.T) {
	project := t.TempDir()
	for _, name := range []string{"sh", "tool"} {
		require.NoError(t, os.WriteFile(project+"/"+name, []byte("#!/bin/sh\necho project $1\n"), 0o700))
	}
	b := open(t, shell.Config{Shell: "sh", Dir: project})
	b.tellAll()
	h := b.script("echo host")
	b.wait(h)
	require.Equal(t, "host\n", text(t, h))
	h = b.start(shell.Command{Argv: []string{"./tool", "asked for"}})
	b.wait(h)
	require.Equal(t, "project asked for\n", text(t, h), "with a slash, from the directory of the command")
	_, err := b.sh.Start(t.Context(), b.tasks, shell.Command{Argv: []string{"tool"}})
	require.ErrorContains(t, err, "not found in $PATH")

	missing := open(t, shell.Config{Shell: "no-such-shell"})
	_, err = missing.sh.Start(t.Context(), missing.tasks, shell.Command{Script: "true"})
	require.ErrorContains(t, err, "no-such-shell")
}

func TestScriptThatLooksLikeAnOption(t *testing.T) {
	for _, sh := range []string{"", "/bin/sh"} {
		b := open(t, shell.Config{Shell: sh})
		b.tellAll()
		for _, script := range []string{"-x || echo no option", "+x || echo no option"} {
			h := b.script(script)
			b.wait(h)
			require.Contains(t, text(t, h), "no option\n", "%q in %q", script, sh)
		}
	}
}

func TestShellServesOneRegistry(t *testing.T) {
	b := open(t, shell.Config{})
	b.tellAll()
	b.run("true")
	other, err := task.Open(t.Context(), task.Config{Kinds: []task.Kind{b.sh}})
	require.NoError(t, err)
	_, err = b.sh.Start(t.Context(), other, shell.Command{Script: "true"})
	require.ErrorContains(t, err, "another registry")
}

func TestShellVariables(t *testing.T) {
	t.Setenv("SHELLOPTS", "errexit")
	t.Setenv("BASHOPTS", "nullglob")
	t.Setenv("ENV", "staging")
	b := open(t, shell.Config{})
	b.tellAll()
	h := b.script("false; echo after $ENV; echo /no/such/*")
	b.wait(h)
	require.Equal(t, "after staging\n/no/such/*\n", text(t, h))
}

// Many kills at once do not each search the system.
func TestManyStubbornCommands(t *testing.T) {
	b := open(t, shell.Config{Grace: 500 * ms, Shell: "/bin/sh"})
	b.tellAll()
	for range 40 {
		b.line(b.script("trap '' TERM; echo up; while :; do sleep 1; done"), "up")
	}
	before := cpu(t)
	require.NoError(t, b.tasks.KillOwned(t.Context(), task.Root))
	require.Empty(t, b.marked())
	t.Logf("%v of CPU for 40 kills", time.Duration(cpu(t)-before))
}

func TestKeepInherited(t *testing.T) {
	fd, err := syscall.Open("/dev/zero", syscall.O_RDONLY, 0) // no O_CLOEXEC
	require.NoError(t, err)
	defer syscall.Close(fd)
	b := open(t, shell.Config{KeepInherited: true})
	b.tellAll()
	h := b.script(fmt.Sprintf("readlink /proc/self/fd/%d", fd))
	b.wait(h)
	require.Equal(t, "/dev/zero\n", text(t, h))
}

func TestCommandFieldsReachTheTask(t *testing.T) {
	b := open(t, shell.Config{})
	h := b.start(shell.Command{Script: "exit 1", Description: "fail", ToolUseID: "toolu_01", Priority: notify.Later})
	st := b.wait(h)
	require.Equal(t, "fail", st.Description)
	require.Equal(t, "toolu_01", st.ToolUseID)
	news, err := b.inbox.Drain(notify.Next)
	require.NoError(t, err)
	require.Empty(t, news, "its priority was overruled")
	require.Equal(t, "toolu_01", b.told()[0].ToolUseID)
}

func TestSummaryCountsWhatWasDropped(t *testing.T) {
	b := open(t, shell.Config{})
	st := b.wait(b.start(shell.Command{Script: "echo 0123456789", OutputLimit: 5, DropOutput: true}))
	require.Equal(t, `Background command "echo 0123456789" completed (exit code 0); 6 bytes of output were not kept`, st.Summary)
	b.told()
	require.Equal(t, "x\nsummary", shell.Result{Output: "x", State: task.State{Summary: "summary"}}.String())
	require.Equal(t, "summary", shell.Result{State: task.State{Summary: "summary"}}.String())
}

func TestNoBash(t *testing.T) {
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(sh, dir+"/sh"))
	t.Setenv("PATH", dir)
	b := open(t, shell.Config{})
	b.tellAll()
	h := b.script("echo $0")
	b.wait(h)
	require.Equal(t, "sh\n", text(t, h))
}

func TestBadPattern(t *testing.T) {
	require.PanicsWithValue(t, `shell: New with DropEnv pattern "[": syntax error in pattern`, func() {
		shell.New(shell.Config{DropEnv: []string{"["}})
	})
}
