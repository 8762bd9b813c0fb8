package task_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/afoot-go/afoot/internal/record"
	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
	"github.com/afoot-go/afoot/task/tasktest"
)

// Sessions on disk: what survives the host, and what the next one says about it.

// openAt opens a registry on a base directory.
func openAt(t testing.TB, base, session string, kinds ...task.Kind) (*task.Registry, *notify.Queue) {
	t.Helper()
	inbox := new(notify.Queue)
	tasks, err := task.Open(t.Context(), task.Config{Dir: base, Session: session, Notify: inbox, Kinds: kinds})
	require.NoError(t, err)
	t.Cleanup(func() { tasks.Close() })
	return tasks, inbox
}

func base(t testing.TB) string { return filepath.Join(t.TempDir(), "base") }

func TestSessionIsTakenUp(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	told := tasktest.NewFake(t, tasks, task.Spec{Description: "told"})
	told.Print("output of told\n")
	told.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	untold := tasktest.NewFake(t, tasks, task.Spec{Description: "untold", ToolUseID: "toolu_01", Priority: notify.Later})
	untold.End(task.Result{Status: task.Failed, Exit: &task.Exit{Code: 3}, Text: "handed back"})
	taken := tasktest.NewFake(t, tasks, task.Spec{Description: "taken"})
	taken.End(task.Result{Status: task.Completed})
	take(t, taken)
	evicted := tasktest.NewFake(t, tasks, task.Spec{Description: "evicted"})
	evicted.End(task.Result{Status: task.Completed})
	take(t, evicted)
	require.NoError(t, tasks.Evict(t.Context(), evicted.ID()))
	byHand := tasktest.NewFake(t, tasks, task.Spec{Description: "by hand"})
	byHand.ClaimNotification()
	byHand.End(task.Result{Status: task.Completed})
	first := inbox.Lease(notify.Later).Notifications()
	require.Error(t, tasks.Close(), "one is untold")

	tasks, inbox = openAt(t, dir, "work")
	var names []string
	for _, st := range tasks.List(t.Context()) {
		names = append(names, st.Description+" "+st.Status.String())
		require.True(t, st.Notified, st.Description)
	}
	require.Equal(t, []string{"told completed", "untold failed", "taken completed", "by hand completed"}, names)
	require.Equal(t, withoutMonotonic(withoutTold(first)), withoutMonotonic(withoutTold(inbox.Lease(notify.Later).Notifications())),
		"told again, the same, under the same id")
	out, err := tasks.Output(t.Context(), told.ID())
	require.NoError(t, err)
	c, err := out.Since(0, 0)
	require.NoError(t, err)
	require.Equal(t, "output of told\n", string(c.Bytes))
	drain(t, inbox)
	require.NoError(t, tasks.Close())

	tasks, _ = openAt(t, dir, "work")
	require.Len(t, tasks.List(t.Context()), 4)
	require.NoError(t, tasks.Close())
}

// What Close has pushed is told by the next host, unless this one kills first.
func TestToldAfterClose(t *testing.T) {
	dir := base(t)
	for _, killFirst := range []bool{false, true} {
		tasks, inbox := openAt(t, dir, "work")
		tasktest.NewFake(t, tasks, task.Spec{})
		if killFirst {
			require.NoError(t, tasks.KillOwned(t.Context(), task.Root))
			require.Len(t, drain(t, inbox), 1)
			require.NoError(t, tasks.Close())
		} else {
			require.Error(t, tasks.Close())
			lease := inbox.Lease(notify.Later)
			require.Len(t, lease.Notifications(), 1)
			require.ErrorIs(t, lease.Commit(), os.ErrClosed)
		}
		tasks, inbox = openAt(t, dir, "work")
		require.Equal(t, killFirst, len(drain(t, inbox)) == 0)
		require.NoError(t, tasks.Close())
	}
}

// Whatever changes about a task is on record: a host that dies then has lost
// nothing of it.
func TestEveryChangeIsRecorded(t *testing.T) {
	tasks, inbox := openAt(t, base(t), "work")
	f := tasktest.NewFake(t, tasks, task.Spec{Description: "first"})
	recorded := func() task.State {
		states, err := task.Read(tasks.Dir())
		require.NoError(t, err)
		return states[0]
	}
	require.Equal(t, task.Running, recorded().Status)
	require.NoError(t, f.Update(func(s task.State) task.State { s.Description = "second"; return s }))
	require.Equal(t, "second", recorded().Description)
	f.Print("12345")
	require.NoError(t, inbox.Lease(notify.Next, tasks.Attachments(task.Root)...).Commit())
	require.EqualValues(t, 5, recorded().OutputTold)
	tasks.Adopt(task.Root, "alice")
	require.Equal(t, task.Owner("alice"), recorded().Owner)
	f.End(task.Result{Status: task.Completed, Descendants: []int{7}, Text: "fine"})
	require.Equal(t, []int{7}, recorded().Descendants)
	require.Equal(t, "fine", recorded().Result)
	require.False(t, recorded().Notified)
	require.NoError(t, f.Kill(t.Context()))
	require.Empty(t, recorded().Descendants)
	drain(t, inbox)
	require.True(t, recorded().Notified)
	require.NoError(t, tasks.Evict(t.Context(), f.ID()))
	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.Empty(t, states)
	require.NoError(t, tasks.Close())
}

// Space is kept for the journal, so that ends can be recorded on a full disk.
func TestEndOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a file system")
	}
	mount := t.TempDir()
	require.NoError(t, syscall.Mount("afoot", mount, "tmpfs", 0, "size=1m,mode=0700"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, 0)) })
	tasks, inbox := openAt(t, mount, "work")
	var fakes []*tasktest.Fake
	for range 10 {
		fakes = append(fakes, tasktest.NewFake(t, tasks, task.Spec{}))
	}
	fakes[0].Print(strings.Repeat("x", 2<<20))
	require.Contains(t, fakes[0].State().OutputError, "no space left")
	require.Positive(t, fakes[0].State().OutputSize)
	for _, f := range fakes {
		f.End(task.Result{Status: task.Completed})
	}
	require.Len(t, drain(t, inbox), 10)
	require.NoError(t, tasks.Close(), "all of it is on record")
	tasks, inbox = openAt(t, mount, "work")
	require.Empty(t, drain(t, inbox))
	require.Len(t, tasks.List(t.Context()), 10)
	require.NoError(t, tasks.Close())
}

// H13: what was told does not come back, however often the session is opened.
func TestH13OldNoticesStayAway(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	for range 5 {
		tasktest.NewFake(t, tasks, task.Spec{}).End(task.Result{Status: task.Failed})
	}
	require.Len(t, drain(t, inbox), 5)
	for range 3 {
		require.NoError(t, tasks.Close())
		tasks, inbox = openAt(t, dir, "work")
		require.Empty(t, drain(t, inbox))
	}
	require.NoError(t, tasks.Close())
}

// Bad input 122: a host dies after the model was called and before it had
// committed. The next one repeats the end, once, under the same id.
func TestBad122HostDiesBetweenCallAndCommit(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	tasktest.NewFake(t, tasks, task.Spec{}).End(task.Result{Status: task.Completed})
	shown := inbox.Lease(notify.Later).Notifications()
	require.Error(t, tasks.Close())
	tasks, inbox = openAt(t, dir, "work")
	again := drain(t, inbox)
	require.Len(t, again, 1)
	require.Equal(t, shown[0].ID, again[0].ID)
	require.NoError(t, tasks.Close())
	tasks, inbox = openAt(t, dir, "work")
	require.Empty(t, drain(t, inbox))
	require.NoError(t, tasks.Close())
}

// A host that died between the record of a task and the start of its process, or
// just after it, has left nothing but the mark to find the process by.
func TestLoneIntentIsLookedForByItsMark(t *testing.T) {
	dir := base(t)
	host := startHost(t, dir, "work", "setsid sleep 300 & sleep 300")
	pid := host.pids(t, 1)[0]
	id := host.states(t)[0].ID
	host.kill(t)
	journal := filepath.Join(host.dir, "journal")
	log, err := os.ReadFile(journal)
	require.NoError(t, err)
	records, _, err := record.Split(log)
	require.NoError(t, err)
	require.Contains(t, string(records[0]), `"kind":"intent"`)
	require.NoError(t, os.WriteFile(journal, record.Append(nil, records[0]), 0o600))

	tasks, inbox := openAt(t, dir, "work", shell.New(shell.Config{}))
	require.Equal(t, string(id), drain(t, inbox)[0].TaskID)
	require.False(t, alive(pid))
	require.Empty(t, marked(t, "AFOOT_TASK_"+string(id)), "nor what left its group")
	require.NoError(t, tasks.Close())
}

func marked(t *testing.T, mark string) (pids []string) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && strings.Contains(string(env), mark) {
			pids = append(pids, file)
		}
	}
	return pids
}

// reviving is a kind whose tasks outlive the host.
type reviving struct{ revived []task.ID }

func (*reviving) Type() task.Type { return task.RemoteAgent }
func (*reviving) Close() error    { return nil }

func (k *reviving) Recover(_ context.Context, h *task.Handle) (task.Task, error) {
	if h.State().Description == "unreachable" {
		return nil, errors.New("no route to host")
	}
	k.revived = append(k.revived, h.ID())
	return new(hostTask), nil
}

func TestKindRecoversItsTasks(t *testing.T) {
	dir := base(t)
	ids := dieWith(t, dir, "lives", "unreachable", "other kind")
	lives, lost, other := ids[0], ids[1], ids[2]
	k := new(reviving)
	tasks, inbox := openAt(t, dir, "work", k)
	h, err := tasks.Get(t.Context(), lives)
	require.NoError(t, err)
	require.Equal(t, []task.ID{lives}, k.revived)
	require.Equal(t, task.Running, h.State().Status)
	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.Equal(t, task.Running, states[0].Status)
	news := drain(t, inbox)
	require.Len(t, news, 2)
	require.Equal(t, string(lost), news[0].TaskID)
	require.Contains(t, news[0].Summary, "its host ended before it did: no route to host")
	require.Equal(t, string(other), news[1].TaskID, "there is no kind for it")
	require.NoError(t, h.Kill(t.Context()), "it is killed through what the kind has returned")
	drain(t, inbox)
	require.NoError(t, tasks.Close())
}

// dieWith leaves tasks as a host does that dies: recorded, and not ended.
func dieWith(t *testing.T, dir string, descriptions ...string) (ids []task.ID) {
	t.Helper()
	tasks, _ := openAt(t, dir, "work")
	for _, description := range descriptions {
		typ := task.RemoteAgent
		if description == "other kind" {
			typ = task.Dream
		}
		ids = append(ids, tasktest.NewFake(t, tasks, task.Spec{Type: typ, Description: description}).ID())
	}
	// What the journal says now is put back after the registry has been closed.
	journal := filepath.Join(tasks.Dir(), "journal")
	log, err := os.ReadFile(journal)
	require.NoError(t, err)
	require.Error(t, tasks.Close())
	require.NoError(t, os.WriteFile(journal, log, 0o600))
	return ids
}

func withoutMonotonic(news []notify.Notification) []notify.Notification {
	for i := range news {
		news[i].Time = news[i].Time.Round(0).UTC()
	}
	return news
}

// H01: whatever is called, one notification in total.
func TestH01OneNotificationInTotal(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "")
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.End(task.Result{Status: task.Completed})
	total := len(drain(t, inbox))
	for range 3 {
		for range 20 {
			h, err := tasks.Get(t.Context(), f.ID())
			if err == nil {
				h.Kill(t.Context())
				h.Wait(t.Context())
				h.Output().Tail(10)
			}
			total += len(drain(t, inbox))
		}
		require.NoError(t, tasks.Close())
		tasks, inbox = openAt(t, dir, "")
	}
	total += len(drain(t, inbox))
	require.Equal(t, 1, total)
}

func TestNamedSessionIsHeld(t *testing.T) {
	dir := base(t)
	tasks, _ := openAt(t, dir, "work")
	_, err := task.Open(t.Context(), task.Config{Dir: dir, Session: "work"})
	require.ErrorIs(t, err, task.ErrSessionHeld)
	require.ErrorContains(t, err, fmt.Sprintf(`"work" by process %d`, os.Getpid()))
	other, _ := openAt(t, dir, "other")
	require.NotEqual(t, tasks.Dir(), other.Dir())
	require.NoError(t, tasks.Close())
	openAt(t, dir, "work")

	_, err = task.Open(t.Context(), task.Config{Session: "work"})
	require.ErrorContains(t, err, "without a Config.Dir")
	inMemory, _ := tasktest.Open(t)
	require.Empty(t, inMemory.Dir())
}

// H08: two hosts on one base have nothing to do with each other.
func TestH08TwoHostsOnOneBase(t *testing.T) {
	dir := base(t)
	a, inboxA := openAt(t, dir, "")
	b, inboxB := openAt(t, dir, "")
	f := tasktest.NewFake(t, a, task.Spec{})
	f.End(task.Result{Status: task.Completed})
	_, err := b.Kill(t.Context(), f.ID())
	require.ErrorIs(t, err, task.ErrNotFound)
	require.Empty(t, drain(t, inboxB))
	require.Len(t, drain(t, inboxA), 1)
}

// H08: what one process runs is nothing that another can stop or is told of.
func TestH08TwoProcessesOnOneBase(t *testing.T) {
	dir := base(t)
	flag := t.TempDir() + "/go"
	other := startHost(t, dir, "", "until test -e "+flag+"; do sleep 0.02; done")
	id := other.states(t)[0].ID
	tasks, inbox := openAt(t, dir, "", shell.New(shell.Config{}))
	_, err := tasks.Kill(t.Context(), id)
	require.ErrorIs(t, err, task.ErrNotFound)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	require.Equal(t, string(id)+".1", other.expect(t, "completed "))
	require.Empty(t, drain(t, inbox))
	require.NoError(t, tasks.Close())
}

// B13, A08: another process that opens, closes and sweeps leaves a session alone
// that is open, however old it looks.
func TestB13A08TwoProcessesOnOneBase(t *testing.T) {
	dir := base(t)
	flag := t.TempDir() + "/go"
	other := startHost(t, dir, "", "until test -e "+flag+"; do sleep 0.02; done; echo x")
	old := time.Now().Add(-10 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(other.dir, "journal"), old, old))
	tasks, _ := openAt(t, dir, "")
	require.NoError(t, tasks.Close())
	removed, err := task.Sweep(dir, 7*24*time.Hour)
	require.NoError(t, err)
	require.Zero(t, removed)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	other.expect(t, "completed ")
	onDisk, err := os.ReadFile(other.states(t)[0].OutputFile)
	require.NoError(t, err)
	require.Equal(t, "x\n", string(onDisk))
}

// B13: a second host that comes and goes leaves the first one's files alone.
func TestB13SecondHostOnTheSameBase(t *testing.T) {
	dir := base(t)
	sh := shell.New(shell.Config{})
	a, inbox := openAt(t, dir, "", sh)
	flag := t.TempDir() + "/go"
	h, err := sh.Start(t.Context(), a, shell.Command{Script: "until test -e " + flag + "; do sleep 0.02; done; echo x"})
	require.NoError(t, err)
	b, _ := openAt(t, dir, "")
	require.NoError(t, b.Close())
	_, err = task.Sweep(dir, 0)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	st, err := h.Wait(t.Context())
	require.NoError(t, err)
	onDisk, err := os.ReadFile(st.OutputFile)
	require.NoError(t, err)
	require.Equal(t, "x\n", string(onDisk))
	require.Equal(t, st.OutputFile, drain(t, inbox)[0].OutputFile)
}

// B16, M03: an id whose output is there already, or whose name somebody has
// planted, is not taken.
func TestB16M03TakenIDs(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	cryptotest.SetGlobalRandom(t, 3)
	first, second := task.NewID(task.Dream), task.NewID(task.Dream)
	require.NoError(t, os.WriteFile(filepath.Join(tasks.Dir(), string(first)+".output"), []byte("old text"), 0o600))
	require.NoError(t, os.Symlink(victim, filepath.Join(tasks.Dir(), string(second)+".output")))
	cryptotest.SetGlobalRandom(t, 3)
	f := tasktest.NewFake(t, tasks, task.Spec{Type: task.Dream})
	require.NotContains(t, []task.ID{first, second}, f.ID())
	f.Print("new")
	require.EqualValues(t, 3, f.State().OutputSize)
	b, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(b))
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
}

func TestM02ModesOfASession(t *testing.T) {
	dir := base(t)
	old := syscall.Umask(0)
	tasks, inbox := openAt(t, dir, "work")
	f := tasktest.NewFake(t, tasks, task.Spec{})
	syscall.Umask(old)
	f.Print("x")
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	seen := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		seen++
		return nil
	}))
	require.Equal(t, 5, seen, "base, session, lock, journal, output")
}

// M09: sessions whose names are alike have directories of their own.
func TestM09NamesAndDirectories(t *testing.T) {
	dir := base(t)
	seen := map[string]string{}
	for _, name := range []string{
		"/p/외주", "/p/개인", "/p/a_b", "/p/a-b", "/p/a.b", "/P/A.B", "..", ".", "CON", "a\x00b", strings.Repeat("x", 1000), strings.Repeat("x", 1001),
	} {
		tasks, _ := openAt(t, dir, name)
		require.Equal(t, dir, filepath.Dir(tasks.Dir()), "%q", name)
		require.Empty(t, seen[tasks.Dir()], "%q", name)
		seen[tasks.Dir()] = name
		require.Regexp(t, `^s-[a-z0-9-]*[0-9a-f]{16}$`, filepath.Base(tasks.Dir()))
		require.NoError(t, tasks.Close())
		again, _ := openAt(t, dir, name)
		require.Equal(t, tasks.Dir(), again.Dir(), "the same name, the same directory")
		require.NoError(t, again.Close())
	}
}

func TestM01M07DirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files to another uid")
	}
	dir := base(t)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chown(dir, 65534, 65534))
	_, err := task.Open(t.Context(), task.Config{Dir: dir})
	require.ErrorContains(t, err, dir+" is not safe to use: it belongs to uid 65534")
}

// A08, M06: sweeping removes what nobody has open and is old, and nothing else.
func TestA08Sweep(t *testing.T) {
	dir := base(t)
	old := time.Now().Add(-10 * 24 * time.Hour)
	session := func(name string, age time.Time) *task.Registry {
		tasks, inbox := openAt(t, dir, name)
		tasktest.NewFake(t, tasks, task.Spec{}).End(task.Result{Status: task.Completed})
		drain(t, inbox)
		require.NoError(t, os.Chtimes(filepath.Join(tasks.Dir(), "journal"), age, age))
		return tasks
	}
	dead, fresh, live := session("dead", old), session("fresh", time.Now()), session("live", old)
	require.NoError(t, dead.Close())
	require.NoError(t, os.Chtimes(filepath.Join(dead.Dir(), "journal"), old, old))
	require.NoError(t, fresh.Close())
	stranger := filepath.Join(dir, "not-ours")
	require.NoError(t, os.Mkdir(stranger, 0o700))
	require.NoError(t, os.Chtimes(stranger, old, old))

	removed, err := task.Sweep(dir, 7*24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.NoDirExists(t, dead.Dir())
	require.DirExists(t, fresh.Dir())
	require.DirExists(t, live.Dir(), "however old, it is open")
	require.DirExists(t, stranger)
}

func TestM06SweepRacesOpen(t *testing.T) {
	dir := base(t)
	var sweeper sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	sweeper.Go(func() {
		for ctx.Err() == nil {
			if _, err := task.Sweep(dir, 0); err != nil {
				t.Errorf("Sweep: %v", err)
			}
		}
	})
	for i := range 300 {
		tasks, err := task.Open(t.Context(), task.Config{Dir: dir, Session: fmt.Sprint("s", i%3)})
		require.NoError(t, err)
		f := tasktest.NewFake(t, tasks, task.Spec{})
		f.Print("x")
		f.End(task.Result{Status: task.Completed})
		states, err := task.Read(tasks.Dir())
		require.NoError(t, err)
		require.Equal(t, f.ID(), states[len(states)-1].ID, "a session that is open is whole")
		require.NoError(t, tasks.Close())
	}
	stop()
	sweeper.Wait()
}

// Another process reads a session while it is open, and when its host is gone.
func TestReadOfALiveAndADeadSession(t *testing.T) {
	dir := base(t)
	host := startHost(t, dir, "work", "sleep 300", "echo done")
	host.expect(t, "completed")
	states, err := task.Read(host.dir)
	require.NoError(t, err)
	require.Equal(t, []task.Status{task.Running, task.Completed}, []task.Status{states[0].Status, states[1].Status})
	require.EqualValues(t, 5, states[1].OutputSize)
	require.Equal(t, "sleep 300", states[0].Command)
	host.kill(t)
	states, err = task.Read(host.dir)
	require.NoError(t, err)
	require.Equal(t, task.Failed, states[0].Status)
	require.Equal(t, task.HostLost, states[0].Reason)
	require.Equal(t, task.Completed, states[1].Status)
	_, err = task.Read(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	tasks, inbox := openAt(t, dir, "work", shell.New(shell.Config{}))
	require.Len(t, drain(t, inbox), 1, "the next host finds what Read has shown")
	require.NoError(t, tasks.Close())
}

// O01, O06: a host dies with tasks running; the next one, with another name or
// none, says so once, ends what still ran, and goes on.
func TestO01HostIsKilled(t *testing.T) {
	dir := base(t)
	host := startHost(t, dir, "", "sleep 301.5", "trap '' TERM; while :; do sleep 0.1; done", "setsid sleep 302.5; true")
	pids := host.pids(t, 3)
	host.kill(t)

	sh := shell.New(shell.Config{Grace: 200 * time.Millisecond})
	tasks, inbox := openAt(t, dir, "", sh)
	news := drain(t, inbox)
	require.Len(t, ids(news), 3)
	for _, n := range news {
		require.Equal(t, "failed", n.Status)
		require.Contains(t, n.Summary, "its host ended before it did")
	}
	for _, st := range tasks.List(t.Context()) {
		require.Equal(t, task.HostLost, st.Reason)
	}
	for _, pid := range pids {
		require.False(t, alive(pid), "process %d", pid)
	}
	flag := t.TempDir() + "/f"
	h, err := sh.Start(t.Context(), tasks, shell.Command{Script: "touch " + flag})
	require.NoError(t, err)
	take(t, h)
	require.FileExists(t, flag)
	require.NoError(t, tasks.Close())
	tasks, inbox = openAt(t, dir, "", shell.New(shell.Config{}))
	require.Empty(t, drain(t, inbox), "told once")
	require.NoError(t, tasks.Close())
}

// A stranger that has got the pid of a lost process is not touched: not one with
// another start tick, nor with another inode, nor one of another boot.
func TestD15StrangerWithOurPid(t *testing.T) {
	stranger := exec.Command("sleep", "300")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it leads a group, as ours did
	require.NoError(t, stranger.Start())
	t.Cleanup(func() { stranger.Process.Kill(); stranger.Wait() })
	pid := fmt.Sprintf(`"pid":%d,`, stranger.Process.Pid)

	// The journal says that the lost process had the stranger's pid, and in turn
	// all that is known of the stranger but one thing.
	tick, inode := identity(t, stranger.Process.Pid)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	forge := func(boot string, tick, inode uint64) func(string) string {
		return func(r string) string {
			r = regexp.MustCompile(`"pid":\d+,`).ReplaceAllString(r, pid)
			r = regexp.MustCompile(`"start":\d+`).ReplaceAllString(r, fmt.Sprintf(`"start":%d`, tick))
			r = regexp.MustCompile(`"inode":\d+`).ReplaceAllString(r, fmt.Sprintf(`"inode":%d`, inode))
			return regexp.MustCompile(`"boot":"[^"]+"`).ReplaceAllString(r, fmt.Sprintf(`"boot":%q`, boot))
		}
	}
	ours := strings.TrimSpace(string(boot))
	for name, forge := range map[string]func(string) string{
		"another boot":  forge("another", tick, inode),
		"another tick":  forge(ours, tick-1, inode),
		"another inode": forge(ours, tick, inode+1),
	} {
		dir := base(t)
		host := startHost(t, dir, "work", "exec sleep 300")
		lost := host.pids(t, 1)[0]
		host.kill(t)
		require.NoError(t, syscall.Kill(lost, syscall.SIGKILL))
		reframe(t, filepath.Join(host.dir, "journal"), forge)
		tasks, inbox := openAt(t, dir, "work", shell.New(shell.Config{Grace: time.Millisecond}))
		require.Len(t, drain(t, inbox), 1, name)
		require.True(t, alive(stranger.Process.Pid), name)
		require.NoError(t, tasks.Close())
	}
}

// identity returns field 22 of proc_pid_stat(5) and the inode of a pidfd.
func identity(t *testing.T, pid int) (tick, inode uint64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	tick, err = strconv.ParseUint(fields[19], 10, 64)
	require.NoError(t, err)
	fd, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &st))
	return tick, st.Ino
}

// O04: what a model needs when it has forgotten everything.
func TestO04Text(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	require.Empty(t, tasks.Text(task.Root))
	f := tasktest.NewFake(t, tasks, task.Spec{Type: task.LocalBash, Command: "npm run\tdev"})
	f.Print("12345")
	over := tasktest.NewFake(t, tasks, task.Spec{})
	over.End(task.Result{Status: task.Completed})
	hers, err := tasks.Register(task.WithOwner(t.Context(), "alice"), task.Spec{Description: "hers"})
	require.NoError(t, err)
	require.Equal(t, string(f.ID())+` (local_bash, running for 0s, 5 bytes of output): npm run\tdev`+"\n", tasks.Text(task.Root))
	require.Contains(t, tasks.Text("alice"), string(hers.ID())+" (, pending for 0s")
	for range 60 {
		tasktest.NewFake(t, tasks, task.Spec{})
	}
	require.Contains(t, tasks.Text(task.Root), "\nand 11 more\n")
	require.NoError(t, tasks.KillOwned(t.Context(), task.Root))
	drain(t, inbox)
}

// A journal that is corrupt is set aside whole, and what stands before the wrong
// record is taken up.
func TestCorruptJournal(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	for range 3 {
		tasktest.NewFake(t, tasks, task.Spec{}).End(task.Result{Status: task.Completed})
		drain(t, inbox)
	}
	require.NoError(t, tasks.Close())
	journal := filepath.Join(tasks.Dir(), "journal")
	log, err := os.ReadFile(journal)
	require.NoError(t, err)
	log[len(log)/2] ^= 1
	require.NoError(t, os.WriteFile(journal, log, 0o600))

	tasks, inbox = openAt(t, dir, "work")
	require.NotEmpty(t, tasks.List(t.Context()))
	aside, err := filepath.Glob(journal + ".corrupt-*")
	require.NoError(t, err)
	require.Len(t, aside, 1)
	kept, err := os.ReadFile(aside[0])
	require.NoError(t, err)
	require.Equal(t, log, kept)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	err = tasks.Close()
	require.ErrorContains(t, err, "corrupt", "Close says so")
	tasks, _ = openAt(t, dir, "work")
	_, err = tasks.Get(t.Context(), f.ID())
	require.NoError(t, err)
	require.NoError(t, tasks.Close())
}

// A corrupt journal that cannot be set aside stays as it is.
func TestCorruptJournalOnAFullDisk(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	tasktest.NewFake(t, tasks, task.Spec{}).End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.NoError(t, tasks.Close())
	journal := filepath.Join(tasks.Dir(), "journal")
	log, err := os.ReadFile(journal)
	require.NoError(t, err)
	log[len(log)/2] ^= 1
	require.NoError(t, os.WriteFile(journal, log, 0o600))
	full := errors.New("disk full")
	remove := failWrites(tasks.Dir(), full)
	_, err = task.Open(t.Context(), task.Config{Dir: dir, Session: "work"})
	remove()
	require.ErrorIs(t, err, full)
	kept, err := os.ReadFile(journal)
	require.NoError(t, err)
	require.Equal(t, log, kept)
}

// A record that cannot be understood, as a later version may write, hides nothing
// else, and is kept.
func TestRecordsOfALaterVersion(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.NoError(t, tasks.Close())
	journal := filepath.Join(tasks.Dir(), "journal")
	log, err := os.ReadFile(journal)
	require.NoError(t, err)
	var later []byte
	for _, r := range []string{
		`{"kind":"paused","id":"x0k2m9q1b"}`, `{"kind":"state","id":"x0k2m9q1b","state":{"id":"x0k2m9q1b","status":"paused"}}`,
		`{"kind":"state","id":"../../victim","state":{"id":"../../victim","status":"running"}}`, `no json`,
	} {
		later = record.Append(later, []byte(r))
	}
	require.NoError(t, os.WriteFile(journal, append(later, log...), 0o600))

	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.Len(t, states, 1)
	defer task.SetCompactAt(1)()
	tasks, _ = openAt(t, dir, "work")
	require.Len(t, tasks.List(t.Context()), 1)
	require.ErrorContains(t, tasks.Close(), "4 records that cannot be understood")
	log, err = os.ReadFile(journal)
	require.NoError(t, err)
	require.Contains(t, string(log), `"kind":"paused"`)
	require.Contains(t, string(log), "no json")
}

// An end that could not be recorded, but was told: it is not told again.
func TestToldWithoutARecordedEnd(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	f := tasktest.NewFake(t, tasks, task.Spec{})
	remove := failWrites(tasks.Dir()+"/journal", errors.New("a moment of bad luck"))
	f.End(task.Result{Status: task.Completed})
	remove()
	require.Len(t, drain(t, inbox), 1)
	require.Error(t, tasks.Close())
	tasks, inbox = openAt(t, dir, "work")
	require.Empty(t, drain(t, inbox))
	st := tasks.List(t.Context())[0]
	require.Equal(t, task.Failed, st.Status)
	require.Equal(t, task.HostLost, st.Reason)
	require.NoError(t, tasks.Close())
}

// What a handle still does after its task was evicted does not bring it back.
func TestEvictedTaskStaysAway(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	f := tasktest.NewFake(t, tasks, task.Spec{})
	f.Print("output")
	lease := inbox.Lease(notify.Later, tasks.Attachments(task.Root)...)
	require.Len(t, lease.Notifications(), 1)
	f.End(task.Result{Status: task.Completed})
	take(t, f)
	require.NoError(t, tasks.Evict(t.Context(), f.ID()))
	require.NoError(t, lease.Commit())
	require.NoError(t, f.Update(func(s task.State) task.State { s.Description = "again"; return s }))
	require.NoError(t, tasks.Close())
	tasks, inbox = openAt(t, dir, "work")
	require.Empty(t, tasks.List(t.Context()))
	require.Empty(t, drain(t, inbox))
	require.NoError(t, tasks.Close())
}

// A kind may find that a task has ended while it recovers it, and may fail badly.
func TestRecoverThatEndsOrPanics(t *testing.T) {
	dir := base(t)
	ids := dieWith(t, dir, "finishes", "panics")
	tasks, inbox := openAt(t, dir, "work", hasty{})
	h, err := tasks.Get(t.Context(), ids[0])
	require.NoError(t, err)
	require.Equal(t, task.Completed, h.State().Status)
	require.NoError(t, h.Kill(t.Context()))
	news := drain(t, inbox)
	require.Len(t, news, 2)
	h, err = tasks.Get(t.Context(), ids[1])
	require.NoError(t, err)
	require.Contains(t, h.State().Error, "its kind panicked: no such session")
	require.NoError(t, tasks.Close())
}

// hasty is a kind whose Recover does not keep to the rules.
type hasty struct{}

func (hasty) Type() task.Type { return task.RemoteAgent }
func (hasty) Close() error    { return nil }

func (hasty) Recover(_ context.Context, h *task.Handle) (task.Task, error) {
	if h.State().Description == "panics" {
		panic("no such session")
	}
	return new(hostTask), h.Finish(task.Result{Status: task.Completed})
}

// Bad input 63: who removes the lock file does not let a second host in.
func TestBad63LockFileRemoved(t *testing.T) {
	dir := base(t)
	tasks, _ := openAt(t, dir, "work")
	require.NoError(t, os.Remove(filepath.Join(tasks.Dir(), "lock")))
	_, err := task.Open(t.Context(), task.Config{Dir: dir, Session: "work"})
	require.ErrorIs(t, err, task.ErrSessionHeld)
	tasktest.NewFake(t, tasks, task.Spec{})
	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.Equal(t, task.Running, states[0].Status, "it is held, and seen to be")
	require.Error(t, tasks.Close())
}

// A session that is only looked at by other hosts grows old all the same.
func TestA08LookingKeepsNothingYoung(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "")
	tasktest.NewFake(t, tasks, task.Spec{}).End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.NoError(t, tasks.Close())
	old := time.Now().Add(-10 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(tasks.Dir(), "journal"), old, old))
	other, _ := openAt(t, dir, "")
	require.NoError(t, other.Close())
	_, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	removed, err := task.Sweep(dir, 7*24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	removed, err = task.Sweep(filepath.Join(dir, "none"), 0)
	require.NoError(t, err)
	require.Zero(t, removed)
	require.NoDirExists(t, filepath.Join(dir, "none"))
}

// The same queue may serve one registry after the other in one program.
func TestReopenWithTheSameQueue(t *testing.T) {
	dir := base(t)
	inbox := new(notify.Queue)
	cfg := task.Config{Dir: dir, Session: "work", Notify: inbox}
	for range 2 {
		tasks, err := task.Open(t.Context(), cfg)
		require.NoError(t, err)
		if len(tasks.List(t.Context())) == 0 {
			tasktest.NewFake(t, tasks, task.Spec{}).End(task.Result{Status: task.Completed})
			require.Error(t, tasks.Close())
			continue
		}
		require.Len(t, drain(t, inbox), 1, "told to the registry that is open")
		require.NoError(t, tasks.Close())
	}
	tasks, err := task.Open(t.Context(), cfg)
	require.NoError(t, err)
	require.Empty(t, drain(t, inbox))
	require.NoError(t, tasks.Close())
}

// A record that cannot be written is no reason not to tell; Close says so.
func TestJournalThatCannotBeWritten(t *testing.T) {
	full := errors.New("disk full")
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	f := tasktest.NewFake(t, tasks, task.Spec{})
	remove := failWrites(tasks.Dir()+"/journal", full)
	f.End(task.Result{Status: task.Completed})
	lease := inbox.Lease(notify.Later)
	require.Len(t, lease.Notifications(), 1, "the end is told all the same")
	require.ErrorIs(t, lease.Commit(), full, "it may come again")
	remove()
	again := tasktest.NewFake(t, tasks, task.Spec{})
	again.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.ErrorIs(t, tasks.Close(), full)

	tasks, inbox = openAt(t, dir, "work")
	news := drain(t, inbox)
	require.Len(t, news, 1)
	require.Equal(t, string(f.ID()), news[0].TaskID, "as lost as the record of its end")
	h, err := tasks.Get(t.Context(), again.ID())
	require.NoError(t, err)
	require.Equal(t, task.Completed, h.State().Status)
	require.NoError(t, tasks.Close())
}

// Bad input 62: what a dead host was writing is never taken for what it wrote.
func TestBad62LeftOverTemp(t *testing.T) {
	dir := base(t)
	tasks, _ := openAt(t, dir, "work")
	require.NoError(t, tasks.Close())
	left := filepath.Join(tasks.Dir(), ".journal.4711.tmp")
	require.NoError(t, os.WriteFile(left, []byte("half"), 0o600))
	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.Empty(t, states)
	require.FileExists(t, left, "Read changes nothing")
	tasks, _ = openAt(t, dir, "work")
	require.NoFileExists(t, left)
	require.NoError(t, tasks.Close())
}

// Bad input 66: a session on a disk that cannot be written to is read, and not
// opened.
func TestBad66ReadOnlyDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a file system")
	}
	mount := t.TempDir()
	require.NoError(t, syscall.Mount("afoot", mount, "tmpfs", 0, "size=4m,mode=0700"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, 0)) })
	tasks, inbox := openAt(t, mount, "work")
	tasktest.NewFake(t, tasks, task.Spec{Description: "x"}).End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.NoError(t, tasks.Close())
	require.NoError(t, syscall.Mount("", mount, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))

	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.Equal(t, "x", states[0].Description)
	for _, session := range []string{"work", "new", ""} {
		_, err = task.Open(t.Context(), task.Config{Dir: mount, Session: session})
		require.ErrorIs(t, err, syscall.EROFS, "%q", session)
		require.ErrorContains(t, err, mount)
	}
}

// Bad input 67: a session that is removed while it is open is not made anew. What
// runs goes on and is told; nothing new is started.
func TestBad67SessionRemovedWhileOpen(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	f := tasktest.NewFake(t, tasks, task.Spec{})
	require.NoError(t, os.RemoveAll(dir))
	_, err := tasks.Register(t.Context(), task.Spec{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Len(t, tasks.List(t.Context()), 1, "nothing half done")
	f.Print("goes on")
	f.End(task.Result{Status: task.Failed})
	news := drain(t, inbox)[0]
	require.Equal(t, "failed", news.Status)
	require.Contains(t, news.Summary, "7 bytes of output were not kept")
	require.NoDirExists(t, dir)
	require.NoError(t, tasks.Close())
}

// Bad input 18: an id that was used is not handed out again, nor found, after it
// was evicted and the host has died.
func TestBad18IDsOfTheDead(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	cryptotest.SetGlobalRandom(t, 5)
	f := tasktest.NewFake(t, tasks, task.Spec{Type: task.Dream})
	f.Print("old text")
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.NoError(t, tasks.Evict(t.Context(), f.ID()))
	require.NoError(t, tasks.Close())
	tasks, inbox = openAt(t, dir, "work")
	_, err := tasks.Get(t.Context(), f.ID())
	require.ErrorIs(t, err, task.ErrNotFound)
	cryptotest.SetGlobalRandom(t, 5)
	again := tasktest.NewFake(t, tasks, task.Spec{Type: task.Dream})
	require.NotEqual(t, f.ID(), again.ID(), "its output is still there")
	again.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.NoError(t, tasks.Close())
}

// Another user who plants things in the base directory stops nobody from opening
// a session, and gets nothing written.
func TestPlantedByAnotherUser(t *testing.T) {
	dir := base(t)
	tasks, _ := openAt(t, dir, "work")
	name := filepath.Base(tasks.Dir())
	require.NoError(t, tasks.Close())
	require.NoError(t, os.RemoveAll(tasks.Dir()))
	victim := t.TempDir()
	for what, plant := range map[string]func(string) error{
		"link": func(p string) error { return os.Symlink(victim, p) },
		"fifo": func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"file": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"theirs": func(p string) error {
			return errors.Join(os.Mkdir(p, 0o777), os.Chown(p, 65534, 65534))
		},
	} {
		if what == "theirs" && os.Geteuid() != 0 {
			continue
		}
		at := filepath.Join(dir, name)
		require.NoError(t, plant(at), what)
		if os.Geteuid() == 0 {
			require.NoError(t, os.Lchown(at, 65534, 65534), what)
		}
		_, err := task.Open(t.Context(), task.Config{Dir: dir, Session: "work"})
		require.ErrorContains(t, err, at+" is not safe to use", what)
		other, _ := openAt(t, dir, "")
		require.NoError(t, other.Close())
		_, err = task.Sweep(dir, 0)
		if err != nil {
			require.ErrorContains(t, err, at, what)
		}
		require.NoError(t, os.RemoveAll(at))
	}
	entries, err := os.ReadDir(victim)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// What anybody is told is on record: a host that dies at that moment has not told
// what the next one does not know.
func TestEndIsOnRecordBeforeItIsPushed(t *testing.T) {
	sink := new(recorder)
	tasks, err := task.Open(t.Context(), task.Config{Dir: base(t), Notify: sink})
	require.NoError(t, err)
	f := tasktest.NewFake(t, tasks, task.Spec{})
	sink.onPush = func() {
		states, err := task.Read(tasks.Dir())
		require.NoError(t, err)
		require.Equal(t, task.Completed, states[0].Status)
		require.False(t, states[0].Notified)
	}
	f.End(task.Result{Status: task.Completed})
	require.NoError(t, sink.pushed[0].Told())
	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.True(t, states[0].Notified)
	require.NoError(t, tasks.Close())
}

// Records of one task may be written in another order than the changes were made.
func TestNewestRecordCounts(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	f := tasktest.NewFake(t, tasks, task.Spec{Description: "old"})
	require.NoError(t, f.Update(func(s task.State) task.State { s.Description = "new"; return s }))
	f.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.NoError(t, tasks.Close())
	journal := filepath.Join(tasks.Dir(), "journal")
	log, err := os.ReadFile(journal)
	require.NoError(t, err)
	records, _, err := record.Split(log)
	require.NoError(t, err)
	var turned []byte
	for _, r := range append(records[len(records)-2:], records[:len(records)-2]...) {
		turned = record.Append(turned, r)
	}
	require.NoError(t, os.WriteFile(journal, turned, 0o600))
	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.Equal(t, "new", states[0].Description)
	require.Equal(t, task.Completed, states[0].Status)
}

// What a host was writing when it died is cut off, and what is written after it
// is whole.
func TestTornRecordIsCutOff(t *testing.T) {
	dir := base(t)
	tasks, inbox := openAt(t, dir, "work")
	tasktest.NewFake(t, tasks, task.Spec{}).End(task.Result{Status: task.Completed})
	drain(t, inbox)
	require.NoError(t, tasks.Close())
	journal := filepath.Join(tasks.Dir(), "journal")
	whole, err := os.ReadFile(journal)
	require.NoError(t, err)
	torn := record.Append(whole, []byte(strings.Repeat("x", 5_000)))[:len(whole)+4_000]
	require.NoError(t, os.WriteFile(journal, torn, 0o600))

	tasks, inbox = openAt(t, dir, "work")
	again := tasktest.NewFake(t, tasks, task.Spec{})
	again.End(task.Result{Status: task.Completed})
	drain(t, inbox)
	states, err := task.Read(tasks.Dir())
	require.NoError(t, err)
	require.Len(t, states, 2)
	require.True(t, states[1].Notified)
	require.NoError(t, tasks.Close())
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// A process is a host in another process, which runs scripts and says on its
// standard output what becomes of them.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	dir   string
}

// conduct makes the test binary, run again, a host and run no tests.
const conduct = "AFOOT_TASK_HOST"

func startHost(t *testing.T, base, session string, scripts ...string) *process {
	t.Helper()
	args, err := json.Marshal(hostArgs{base, session, scripts})
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), conduct+"="+string(args))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	h := &process{cmd: cmd, lines: bufio.NewScanner(out)}
	h.dir = h.expect(t, "dir ")
	return h
}

// expect reads the next line, which must begin with prefix, and returns the rest.
func (h *process) expect(t *testing.T, prefix string) string {
	t.Helper()
	for h.lines.Scan() {
		if rest, ok := strings.CutPrefix(h.lines.Text(), prefix); ok {
			return rest
		}
	}
	t.Fatalf("the host ended before it said %q", prefix)
	return ""
}

// states returns what the host's session says, from outside.
func (h *process) states(t *testing.T) []task.State {
	t.Helper()
	states, err := task.Read(h.dir)
	require.NoError(t, err)
	return states
}

func (h *process) pids(t *testing.T, n int) (pids []int) {
	t.Helper()
	for _, st := range h.states(t) {
		var d shell.Data
		require.NoError(t, json.Unmarshal(st.Data, &d))
		pids = append(pids, d.PID)
	}
	require.Len(t, pids, n)
	return pids
}

func (h *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, h.cmd.Process.Kill())
	h.cmd.Wait()
}

type hostArgs struct {
	Base, Session string
	Scripts       []string
}

// actAsHost is what the child does: it runs the scripts, and tells their ends as
// they come, until it is killed.
func actAsHost(arg string) error {
	var args hostArgs
	if err := json.Unmarshal([]byte(arg), &args); err != nil {
		return err
	}
	ctx := context.Background()
	inbox := new(notify.Queue)
	sh := shell.New(shell.Config{})
	tasks, err := task.Open(ctx, task.Config{Dir: args.Base, Session: args.Session, Notify: inbox, Kinds: []task.Kind{sh}})
	if err != nil {
		return err
	}
	for _, script := range args.Scripts {
		if _, err := sh.Start(ctx, tasks, shell.Command{Script: script}); err != nil {
			return err
		}
	}
	fmt.Println("dir " + tasks.Dir())
	for {
		if err := inbox.Wait(ctx, notify.Later); err != nil {
			return err
		}
		news, err := inbox.Drain(notify.Later)
		if err != nil {
			return err
		}
		for _, n := range news {
			fmt.Println(n.Status + " " + n.ID)
		}
	}
}
