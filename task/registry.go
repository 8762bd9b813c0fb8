package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/output"
)

var (
	// ErrNotFound is returned for the id of a task that is not there, or that
	// belongs to another owner than the one who asks.
	ErrNotFound = errors.New("task: not found")

	// ErrEnded is returned by what needs a task that has not ended.
	ErrEnded = errors.New("task: already ended")

	// ErrInUse is returned by Evict for a task that must be kept.
	ErrInUse = errors.New("task: still running, not told, or with processes left")

	// ErrClosed is returned by what would begin something new after Shutdown or
	// Close.
	ErrClosed = errors.New("task: registry closed")
)

// Config says what a [Registry] works with.
// The zero Config is ready to use.
type Config struct {
	// Dir is the directory below which each session has one of its own, with the
	// records of its tasks and their outputs: they outlive the host. It is made if
	// need be, mode 0700. If empty, records live in memory and end with the host.
	Dir string

	// Session names the session in Dir: the next host that opens it finds its
	// tasks. If empty, the session has no name, and the next host without a name
	// finds them. It needs Dir.
	Session string

	// Notify gets the notifications: a *notify.Queue, or a *notify.Hub where
	// several agents have a queue each. If nil, ends are not announced, and
	// count as told; Wait, Take and Watch tell of them.
	Notify notify.Sink

	// Kinds are closed with the registry. A kind's starter refuses a registry
	// that was not opened with it.
	Kinds []Kind

	// TaskCreated are hooks that each new task passes, in order.
	TaskCreated []Hook

	// MaxRunning is the number of tasks that may be pending or running at once,
	// and MaxRunningOf the same for each type. Zero or absent means no limit.
	MaxRunning   int
	MaxRunningOf map[Type]int

	// OutputLimit is the number of bytes of output kept for a task that sets no
	// limit of its own. If zero, output.DefaultLimit is used.
	OutputLimit int64

	// MemLimit is the number of bytes of a task's output kept in memory before
	// it moves to a file. If zero, output.DefaultMemLimit is used.
	MemLimit int64

	// Retention is how long a task that has ended and been told is kept, by
	// type. Absent means 30 s for LocalAgent and DefaultRetention for others.
	Retention map[Type]time.Duration

	// CloseLimit bounds Close. If zero, DefaultCloseLimit is used.
	CloseLimit time.Duration
}

const (
	// DefaultRetention is how long a told task is kept: long enough for a model
	// to come back to its output within a piece of work.
	DefaultRetention = 10 * time.Minute

	// DefaultCloseLimit is how long Close may take: two seconds between SIGTERM
	// and SIGKILL, two for processes to disappear, one to spare.
	DefaultCloseLimit = 5 * time.Second

	agentRetention = 30 * time.Second
)

// A Hook sees a new task before it exists. It returns the spec to go on with,
// changed or not, or an error to refuse the task; see [RefusedError].
type Hook func(ctx context.Context, spec Spec) (Spec, error)

// A RefusedError says that a hook refused a task, and why.
type RefusedError struct {
	Description string
	Err         error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("task: %q refused: %v", e.Description, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// A LimitError says that as many tasks run as may.
type LimitError struct {
	Type  Type // empty if the limit is that of all types together
	Limit int
}

func (e *LimitError) Error() string {
	if e.Type == "" {
		return fmt.Sprintf("task: %d tasks run already, the most allowed", e.Limit)
	}
	return fmt.Sprintf("task: %d tasks of type %s run already, the most allowed", e.Limit, e.Type)
}

// A Spec says what a new task is.
type Spec struct {
	Type        Type
	Description string // for people and models, one line
	Command     string // the command line, if it runs one
	ToolUseID   string // the tool call that the model started it with
	Owner       Owner  // Root means the owner of the context

	// Priority overrules when the model is told of the end. The zero Priority
	// leaves it to the queue: a failed or killed end before the next call, a
	// completed one when the turn is over.
	Priority notify.Priority

	// OutputLimit is the number of bytes of output kept. If zero, the
	// registry's is used. A task that prints more is killed with the reason
	// OutputLimit, unless DropOutput is set: then the rest is dropped and counted.
	OutputLimit int64
	DropOutput  bool

	Data json.RawMessage // the kind's own, for State.Data; JSON
}

// specLimit is the number of bytes that the texts of a spec may have together: a
// record of the task has them all, several times.
const specLimit = 4 << 20

func (s Spec) check() error {
	if n := len(s.Description) + len(s.Command) + len(s.ToolUseID) + len(s.Owner) + len(s.Data); n > specLimit {
		return fmt.Errorf("task: a spec of %d bytes is too large: %d are the most", n, specLimit)
	}
	return checkData(s.Data)
}

// checkData returns an error for what cannot be a state's data.
func checkData(data json.RawMessage) error {
	if len(data) > 0 && !json.Valid(data) {
		return fmt.Errorf("task: Data is not JSON: %.64q", data)
	}
	return nil
}

// A Registry knows the tasks of one session, running and ended.
// Its methods may be called from any goroutine.
type Registry struct {
	cfg      Config
	kinds    map[Type]Kind
	spill    output.Dir
	own      *session   // nil without Config.Dir
	sessions []*session // own, and those of dead hosts whose tasks are here

	mu        sync.Mutex // guards the fields below; taken before StateBase.mu
	tasks     map[ID]*entry
	created   uint64 // tasks so far
	running   map[Type]int
	live      int // tasks that have not ended
	family    family
	watchers  map[*watcher]struct{}
	unwatched bool          // closed: a new watcher sees nothing
	shut      bool          // refuses new tasks
	open      int           // tasks whose end has not been announced
	idle      chan struct{} // closed when open becomes 0; nil while nobody waits
	swept     time.Time     // when eviction last looked

	closing sync.Once
	life    context.Context // ends when Close has killed everything
	stop    context.CancelFunc
	work    sync.WaitGroup // the registry's own goroutines; added to with mu held, before life ends
}

// Open returns a registry. Close ends it.
//
// With Config.Dir it has the tasks that earlier hosts of the session left. An end
// that nobody was told is pushed again, under the same id. A task that had not
// ended is given to its kind to recover; what cannot be, has failed, because its
// host was lost, and that is told once. Without a name the session is a new one,
// and the tasks are those of all sessions without a name whose hosts are dead. A
// named session that another host has open is ErrSessionHeld.
//
// The context bounds the opening only.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if cfg.OutputLimit < 0 || cfg.MemLimit < 0 || cfg.MaxRunning < 0 || cfg.CloseLimit < 0 {
		return nil, errors.New("task: negative limit in Config")
	}
	if cfg.Session != "" && cfg.Dir == "" {
		return nil, fmt.Errorf("task: session %q without a Config.Dir", cfg.Session)
	}
	cfg.Kinds = slices.Clone(cfg.Kinds)
	cfg.TaskCreated = slices.Clone(cfg.TaskCreated)
	cfg.MaxRunningOf = maps.Clone(cfg.MaxRunningOf)
	cfg.Retention = maps.Clone(cfg.Retention)
	r := &Registry{
		cfg:      cfg,
		kinds:    make(map[Type]Kind),
		tasks:    make(map[ID]*entry),
		running:  make(map[Type]int),
		family:   make(family),
		watchers: make(map[*watcher]struct{}),
	}
	for _, k := range cfg.Kinds {
		if r.kinds[k.Type()] != nil {
			return nil, fmt.Errorf("task: two kinds of type %s", k.Type())
		}
		r.kinds[k.Type()] = k
	}
	r.life, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	if cfg.Dir != "" {
		if err := r.openSessions(ctx); err != nil {
			return nil, errors.Join(err, r.closeSessions())
		}
	}
	return r, nil
}

// Dir returns the directory of the registry's session, or "" if it has none.
func (r *Registry) Dir() string {
	if r.own == nil {
		return ""
	}
	return r.own.dir.Path()
}

// Kind returns the kind of tasks of type t that the registry was opened with,
// or nil.
func (r *Registry) Kind(t Type) Kind { return r.kinds[t] }

// An entry is a task in a registry.
type entry struct {
	handle  Handle // the one that is given out
	id      ID
	run     int
	typ     Type
	seq     uint64   // order of creation
	session *session // where it is recorded; nil: nowhere
	out     *output.TaskOutput
	done    chan struct{} // closed when the end has been announced
	own     StateBase     // what base is, unless the task type embeds one

	// The fields below are guarded by Registry.mu.
	base    *StateBase
	task    Task      // nil until Start
	takers  int       // calls of Take that wait for the end
	settled bool      // the latch has been claimed at the end
	pushed  bool      // a notification is in the sink, or was
	told    time.Time // when the model knew of the end; zero: not yet
	shown   time.Time // when the model was last shown output
	notices int       // notifications without status so far
	evicted bool      // forgotten: nothing of it is recorded any more
}

// Register makes a task that is pending. Its starter calls [Handle.Start] when
// the work has begun, and [Handle.Finish] when it has ended.
//
// The hooks run first: the error is a *RefusedError if one of them refuses, a
// *LimitError if too many tasks run, and ErrClosed after Shutdown or Close. The
// context bounds the call only; its owner is the task's.
func (r *Registry) Register(ctx context.Context, spec Spec) (*Handle, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := time.Now()
	r.evictDue(now)
	lineage := lineageOf(ctx)
	if spec.Owner == Root {
		spec.Owner = OwnerOf(ctx)
	}
	var err error
	for _, hook := range r.cfg.TaskCreated {
		described := spec.Description
		if spec, err = hook(ctx, spec); err != nil {
			return nil, &RefusedError{Description: described, Err: err}
		}
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	if err := r.admit(spec.Type); err != nil {
		return nil, err
	}
	e, err := r.newEntry(spec, now)
	if err == nil {
		err = r.add(e, lineage)
	}
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.releaseLocked(spec.Type)
		return nil, err
	}
	r.persist(e, recIntent)
	return &e.handle, nil
}

// add makes a new task known.
func (r *Registry) add(e *entry, l *lineage) error {
	r.mu.Lock()
	if !r.shut {
		defer r.mu.Unlock()
		r.family.learn(l)
		r.family.add(e.own.state.Owner, l.current())
		r.addLocked(e)
		return nil
	}
	r.mu.Unlock()
	return errors.Join(ErrClosed, e.out.Discard()) // closed while the output was made
}

// addLocked makes a task known.
func (r *Registry) addLocked(e *entry) {
	r.created++
	e.seq = r.created
	r.tasks[e.id] = e
	if !e.ended() {
		r.open++
	}
	r.emitLocked(e)
}

// newEntry makes an entry that is in no registry yet.
func (r *Registry) newEntry(spec Spec, now time.Time) (*entry, error) {
	e := &entry{run: 1, typ: spec.Type, session: r.own, done: make(chan struct{})}
	e.handle = Handle{r: r, e: e}
	cfg := output.Config{
		Dir:      &r.spill,
		MemLimit: r.cfg.MemLimit,
		Limit:    cmp.Or(spec.OutputLimit, r.cfg.OutputLimit),
	}
	if r.own != nil {
		cfg.Dir, cfg.Through = r.own.outputs, true
	}
	if !spec.DropOutput {
		cfg.OnLimit = func() { r.outputFull(e) }
	}
	var err error
	for { // an id that is in use is not taken, nor one whose output is still there
		e.id = NewID(spec.Type)
		cfg.Name = string(e.id)
		if r.known(e.id) {
			continue
		}
		if e.out, err = output.New(cfg); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("task: %w", err)
	}
	e.base, e.own.out = &e.own, e.out
	e.own.state = State{
		ID: e.id, Run: 1, Type: spec.Type, Description: spec.Description, Command: spec.Command,
		ToolUseID: spec.ToolUseID, Owner: spec.Owner, Created: now, Priority: spec.Priority,
		Data: slices.Clone(spec.Data),
	}
	return e, nil
}

func (r *Registry) known(id ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks[id] != nil
}

// admit counts one more live task of type t, or says why there may be none.
func (r *Registry) admit(t Type) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admitLocked(t)
}

// admitLocked counts one more live task of type t, or says why there may be
// none.
func (r *Registry) admitLocked(t Type) error {
	if r.shut {
		return ErrClosed
	}
	if limit := r.cfg.MaxRunning; limit > 0 && r.live >= limit {
		return &LimitError{Limit: limit}
	}
	if limit := r.cfg.MaxRunningOf[t]; limit > 0 && r.running[t] >= limit {
		return &LimitError{Type: t, Limit: limit}
	}
	r.live++
	r.running[t]++
	return nil
}

// releaseLocked is the opposite of admitLocked.
func (r *Registry) releaseLocked(t Type) {
	r.live--
	r.running[t]--
}

// settledOne counts one task less whose end is still to be announced.
func (r *Registry) settledOne() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	if r.open == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// Get returns the task with that id. The error matches ErrNotFound if there is
// none, or none that the owner of ctx may see.
func (r *Registry) Get(ctx context.Context, id ID) (*Handle, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.tasks[id]
	if e == nil || !visible(OwnerOf(ctx), e.ownerLocked()) {
		return nil, fmt.Errorf("%w: %.64q", ErrNotFound, id)
	}
	return &e.handle, nil
}

// visible reports whether asker may see the tasks of owner.
func visible(asker, owner Owner) bool { return asker == Root || asker == owner }

func (e *entry) ownerLocked() Owner {
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	return e.base.state.Owner
}

// List returns the state of every task that the owner of ctx may see, oldest
// first.
func (r *Registry) List(ctx context.Context) []State {
	asker := OwnerOf(ctx)
	handles := r.handles(func(e *entry) bool { return visible(asker, e.ownerLocked()) })
	states := make([]State, len(handles))
	for i, h := range handles {
		states[i] = h.State()
	}
	return states
}

// handles returns the tasks that match, oldest first. match is called with the
// registry locked.
func (r *Registry) handles(match func(*entry) bool) []*Handle {
	var found []*Handle
	r.mu.Lock()
	for _, e := range r.tasks {
		if match(e) {
			found = append(found, &e.handle)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(found, func(a, b *Handle) int { return cmp.Compare(a.e.seq, b.e.seq) })
	return found
}

// Output returns what the task with that id has printed. Errors are those of Get.
func (r *Registry) Output(ctx context.Context, id ID) (*output.TaskOutput, error) {
	h, err := r.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return h.Output(), nil
}
