package shell_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/leak"
	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
	"github.com/afoot-go/afoot/task/tasktest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience bounds what takes far less when all is well. It is long because the
// machine may be busy, and shorter than anything the commands wait for.
const patience = 20 * time.Second

// A bench is a shell with its registry and queue. Its commands carry a mark by
// which the processes they leave are found, and ended when the test is over.
type bench struct {
	*testing.T
	sh    *shell.Shell
	tasks *task.Registry
	inbox *notify.Queue
	mark  string
}

func open(t *testing.T, cfg shell.Config) *bench {
	b := &bench{T: t, sh: shell.New(cfg), mark: "AFOOT_TEST_MARK=" + rand.Text()}
	t.Cleanup(func() {
		for _, pid := range b.marked() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	b.tasks, b.inbox = tasktest.Open(t, b.sh)
	return b
}

// start starts cmd, marked.
func (b *bench) start(cmd shell.Command) *task.Handle {
	b.Helper()
	cmd.SetEnv = append(cmd.SetEnv, b.mark)
	h, err := b.sh.Start(b.Context(), b.tasks, cmd)
	require.NoError(b, err, "Start(%q)", cmd.Script)
	return h
}

// script starts a script.
func (b *bench) script(script string) *task.Handle {
	b.Helper()
	return b.start(shell.Command{Script: script})
}

// wait waits for the end.
func (b *bench) wait(h *task.Handle) task.State {
	b.Helper()
	ctx, cancel := timeout(b)
	defer cancel()
	st, err := h.Wait(ctx)
	require.NoError(b, err, "Wait for %q", st.Command)
	return st
}

// run starts a script and waits for its end.
func (b *bench) run(script string) task.State {
	b.Helper()
	return b.wait(b.script(script))
}

// told takes everything out of the queue.
func (b *bench) told() []notify.Notification {
	b.Helper()
	news, err := b.inbox.Drain(notify.Later)
	require.NoError(b, err, "Drain")
	return news
}

// tellAll empties the queue when the test is over, for tests that look at other things.
func (b *bench) tellAll() { b.Cleanup(func() { b.told() }) }

// line waits until the task has printed a line that is text.
func (b *bench) line(h *task.Handle, text string) {
	b.Helper()
	ctx, cancel := timeout(b)
	defer cancel()
	_, err := h.WaitFor(ctx, exactly(text))
	require.NoError(b, err, "WaitFor(%q)", text)
}

// marked returns the processes that carry the mark and are alive.
func (b *bench) marked() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(b.mark)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		pids = append(pids, pid)
	}
	return pids
}

func text(t testing.TB, h *task.Handle) string {
	t.Helper()
	var buf bytes.Buffer
	for off := int64(0); ; {
		c, err := h.Output().Since(off, 0)
		require.NoError(t, err, "Since(%d)", off)
		if len(c.Bytes) == 0 {
			return buf.String()
		}
		buf.Write(c.Bytes)
		off = c.Next
	}
}

func data(t testing.TB, st task.State) (d shell.Data) {
	t.Helper()
	require.NoError(t, unmarshal(st.Data, &d), "State.Data")
	return d
}
