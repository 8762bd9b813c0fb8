package task_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/fsys"
	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
)

// A crash engine: it runs random lives of a session, and after every call that
// changes the disk it looks at what a host that died there would have left. Each
// such image is opened, and some are opened by a host that dies as well.

// knowledge is what a host knew at the moment of its death.
type knowledge struct {
	known  map[task.ID]bool // Register has returned it
	told   map[string]bool  // Commit, Take or Evict of it has returned
	moving map[string]bool  // a call about it was under way: told or not, both are right
	ended  map[string]bool  // Finish of it has returned, with completed
}

func newKnowledge() *knowledge {
	return &knowledge{map[task.ID]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

// engine opens the images of one test.
type engine struct {
	t      *testing.T
	rnd    *rand.Rand
	images int
	sizes  map[string]int64 // of the files, before the last write
}

const crashSession = "crash"

// live runs f on a base directory with a look at it after every call. When f is
// over, so is the looking.
func (e *engine) live(base string, k *knowledge, again bool, f func()) {
	e.sizes = map[string]int64{}
	filepath.WalkDir(base, func(path string, _ fs.DirEntry, _ error) error {
		e.sizes[path] = size(path)
		return nil
	})
	defer fsys.Install(&fsys.Seam{Below: base, After: func(op, path string) {
		before, after := e.sizes[path], size(path)
		e.sizes[path] = after
		e.check(base, k, again)
		if op != "write" {
			return
		}
		for _, torn := range []int64{before + 1, before + (after-before)/2} {
			if torn < after {
				e.checkTorn(base, k, again, path, torn)
			}
		}
	}})()
	f()
}

// size returns the size of a file, or 0 if there is none.
func size(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (e *engine) check(base string, k *knowledge, again bool) {
	e.checkTorn(base, k, again, "", 0)
}

// checkTorn opens an image of base in which the file at path has been cut.
func (e *engine) checkTorn(base string, k *knowledge, again bool, path string, size int64) {
	e.images++
	image, err := os.MkdirTemp(filepath.Dir(base), "image-")
	require.NoError(e.t, err)
	defer os.RemoveAll(image)
	clone := filepath.Join(image, "base")
	copyTree(e.t, base, clone)
	if path != "" {
		rel, err := filepath.Rel(base, path)
		require.NoError(e.t, err)
		require.NoError(e.t, os.Truncate(filepath.Join(clone, rel), size))
	}
	if again && e.rnd.IntN(20) == 0 { // the next host dies too, at every point of its opening
		twice := filepath.Join(image, "twice")
		copyTree(e.t, clone, twice)
		sizes := e.sizes
		e.live(twice, k, false, func() { e.open(twice, k) })
		e.sizes = sizes
	}
	e.open(clone, k)
}

// open opens an image as the next host does, and checks what it is told.
func (e *engine) open(base string, k *knowledge) {
	inbox := new(notify.Queue)
	tasks, err := task.Open(e.t.Context(), task.Config{Dir: base, Session: crashSession, Notify: inbox})
	require.NoError(e.t, err, "image %d", e.images)
	lease := inbox.Lease(notify.Later)
	seen := map[string]int{}
	for _, n := range lease.Notifications() {
		seen[n.ID]++
		require.False(e.t, k.told[n.ID] && !k.moving[n.ID], "image %d: %s is told twice", e.images, n.ID)
		if k.ended[n.ID] {
			require.Equal(e.t, "completed", n.Status, "image %d: the end of %s is another one", e.images, n.ID)
			require.Equal(e.t, "result", n.Result)
		}
	}
	for id := range k.known {
		end := string(id) + ".1"
		if !k.told[end] && !k.moving[end] {
			require.Equal(e.t, 1, seen[end], "image %d: %s is lost", e.images, end)
		}
	}
	tasks.Close() // what it says of untold ends has been looked at
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(from, path)
		require.NoError(t, err)
		if d.IsDir() {
			return os.Mkdir(filepath.Join(to, rel), 0o700)
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	}))
}

// life is one random life of a session: hosts that open it one after the other,
// register, start, print, update, adopt, end, lease, commit, return, take and evict.
func (e *engine) life(base string, k *knowledge) {
	for range 1 + e.rnd.IntN(3) {
		inbox := new(notify.Queue)
		tasks, err := task.Open(e.t.Context(), task.Config{Dir: base, Session: crashSession, Notify: inbox})
		require.NoError(e.t, err)
		var live []*task.Handle
		for range 3 + e.rnd.IntN(8) {
			e.step(tasks, inbox, k, &live)
		}
		for _, h := range live {
			h.Finish(task.Result{Status: task.Completed, Text: "result"})
		}
		tasks.Close()
	}
}

func (e *engine) step(tasks *task.Registry, inbox *notify.Queue, k *knowledge, live *[]*task.Handle) {
	pick := func() *task.Handle {
		if len(*live) == 0 {
			return nil
		}
		return (*live)[e.rnd.IntN(len(*live))]
	}
	// about calls f, and afterwards knows that ids have been told.
	about := func(ids []string, f func() error) {
		for _, id := range ids {
			k.moving[id] = true
		}
		err := f()
		for _, id := range ids {
			k.told[id] = k.told[id] || err == nil
			delete(k.moving, id)
		}
	}
	switch h := pick(); e.rnd.IntN(10) {
	case 0, 1:
		h, err := tasks.Register(e.t.Context(), task.Spec{Type: task.LocalAgent, Description: "x"})
		require.NoError(e.t, err)
		k.known[h.ID()] = true
		*live = append(*live, h)
	case 2:
		if h != nil {
			h.Start(new(hostTask))
		}
	case 3:
		if h != nil {
			fmt.Fprintln(h.Output(), "some output")
		}
	case 4, 5:
		if h != nil {
			if h.Finish(task.Result{Status: task.Completed, Text: "result"}) == nil {
				k.ended[string(h.ID())+".1"] = true
			}
		}
	case 6:
		lease := inbox.Lease(notify.Later, tasks.Attachments(task.Root)...)
		var ids []string
		for _, n := range lease.Notifications() {
			if n.Status != "" {
				ids = append(ids, n.ID)
			}
		}
		if e.rnd.IntN(3) == 0 {
			require.NoError(e.t, lease.Return())
			return
		}
		about(ids, lease.Commit)
	case 7:
		if h != nil && h.State().Status.Terminal() {
			about([]string{string(h.ID()) + ".1"}, func() error { _, err := h.Take(e.t.Context()); return err })
			if e.rnd.IntN(2) == 0 {
				require.NoError(e.t, tasks.Evict(e.t.Context(), h.ID()))
			}
		}
	case 8:
		if h != nil {
			require.NoError(e.t, h.Update(func(s task.State) task.State { s.Description += "."; return s }))
		}
	case 9:
		tasks.Adopt(task.Owner(fmt.Sprint(e.rnd.IntN(3))), task.Owner(fmt.Sprint(e.rnd.IntN(3))))
		tasks.Adopt(task.Root, task.Owner(fmt.Sprint(e.rnd.IntN(3))))
	}
}

func TestCrashAfterEveryCall(t *testing.T) {
	images := 500
	switch {
	case os.Getenv("AFOOT_FULL") != "":
		images = 50_000
	case testing.Short():
		images = 100
	}
	defer task.SetCompactAt(2_000)()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	e := &engine{t: t, rnd: rand.New(rand.NewPCG(seed, 0))}
	root := t.TempDir()
	for life := 0; e.images < images; life++ {
		dir := filepath.Join(root, fmt.Sprint(life))
		require.NoError(t, os.Mkdir(dir, 0o700))
		base := filepath.Join(dir, "base")
		k := newKnowledge()
		e.live(base, k, true, func() { e.life(base, k) })
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing beside the base directory")
		require.NoError(t, os.RemoveAll(dir))
	}
	t.Logf("%d images", e.images)
}
