package output

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/afoot-go/afoot/internal/fsys"
)

// Limits that a zero [Config] stands for.
const (
	// DefaultMemLimit is the number of bytes that an output keeps in memory.
	DefaultMemLimit = 8 << 20

	// DefaultLimit is the number of bytes that an output keeps at all.
	DefaultLimit = 5 << 30
)

var (
	// ErrClosed is returned by reads of an output after its Close, and for a new
	// file in a [Dir] after its Close.
	ErrClosed = errors.New("output: closed")

	// ErrEnded is returned by a Write after [TaskOutput.End].
	ErrEnded = errors.New("output: ended")

	// ErrOffset is returned for an offset below zero.
	ErrOffset = errors.New("output: negative offset")
)

// Config says how much a [TaskOutput] keeps, and where.
// The zero Config is ready to use.
type Config struct {
	// Dir is where the output gets a file when it outgrows memory.
	// If nil, the output makes a directory of its own, and its Close removes it.
	Dir *Dir

	// Name is the name of that file in Dir, to which ".output" is added. If
	// empty, it is a random one.
	Name string

	// Through has every byte written to the file from the first on, so that
	// others can read it while it grows; the first makes the file. MemLimit means
	// nothing then.
	Through bool

	// MemLimit is the number of bytes kept in memory. An output that grows
	// beyond it moves to its file whole. If zero, DefaultMemLimit is used.
	MemLimit int64

	// Limit is the number of bytes kept at all. If zero, DefaultLimit is used.
	Limit int64

	// OnLimit is called once, by the Write that first drops a byte because of
	// Limit, with no lock held; it must not block. If nil, nothing is called.
	OnLimit func()
}

// A TaskOutput is everything that one run of a task has printed.
//
// Its methods may be called from any goroutine. The zero TaskOutput is empty
// and ready to use, as [New] returns it for a zero [Config].
type TaskOutput struct {
	cfg Config

	// append makes each Write whole and puts it in one place. It is held across
	// work on the file, as the lock of an append-only log is, and is the outer
	// one to mu.
	append sync.Mutex
	own    *Dir // guarded by append: made when cfg.Dir is nil

	mu      sync.Mutex // guards the fields below
	mem     memory     // everything, until file is set
	file    *file      // nil while everything is in memory
	size    int64      // bytes kept
	dropped int64      // bytes that came after the kept ones
	full    bool       // a byte was dropped because of the limit
	lines   lineIndex
	unread  bool          // lines has not been made: the bytes are an earlier process's
	err     error         // why the disk took no more
	ended   bool          // no more bytes will come
	closed  bool          // nothing can be read any more
	grown   chan struct{} // closed when size or ended changes; nil while nobody waits
}

// fileSuffix is what the names of output files end in.
const fileSuffix = ".output"

// New returns an empty output. It makes no file: the first Write that brings it
// over cfg.MemLimit does. With cfg.Through the error matches fs.ErrExist if the
// name is taken.
func New(cfg Config) (*TaskOutput, error) {
	if cfg.MemLimit < 0 || cfg.Limit < 0 {
		return nil, fmt.Errorf("output: negative limit (MemLimit %d, Limit %d)", cfg.MemLimit, cfg.Limit)
	}
	if cfg.Name != "" {
		if err := fsys.CheckName(cfg.Name); err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
	}
	if cfg.Through && cfg.Dir != nil && cfg.Name != "" {
		if err := cfg.Dir.free(cfg.Name + fileSuffix); err != nil {
			return nil, err
		}
	}
	return &TaskOutput{cfg: cfg}, nil
}

// Reopen returns the output of that name which an earlier process left in dir.
// It has ended. The error matches fs.ErrNotExist if there is none.
func Reopen(dir *Dir, name string) (*TaskOutput, error) {
	f, err := dir.open(name + fileSuffix)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return &TaskOutput{
		cfg: Config{Dir: dir, Name: name}, size: info.Size(), ended: true, unread: true,
		file: &file{dir: dir, name: name + fileSuffix, path: f.Name(), ended: true},
	}, nil
}

// Write appends p, whole and in one place however many goroutines write. What
// does not fit any more is dropped and counted, and Write still returns len(p)
// and nil: a writer is not made to fail because its output is large. After
// [TaskOutput.End] it returns ErrEnded.
func (o *TaskOutput) Write(p []byte) (int, error) {
	first, err := o.write(p)
	if err != nil {
		return 0, err
	}
	if first && o.cfg.OnLimit != nil {
		o.cfg.OnLimit()
	}
	return len(p), nil
}

// write appends what fits of p. It reports whether p is the first write of
// which the limit dropped something.
func (o *TaskOutput) write(p []byte) (first bool, err error) {
	o.append.Lock()
	defer o.append.Unlock()

	o.mu.Lock()
	size, file, stopped := o.size, o.file, o.dropped > 0
	ended := o.ended
	o.mu.Unlock()

	if ended {
		return false, ErrEnded
	}
	keep := p[:min(int64(len(p)), o.limit()-size)]
	over := len(keep) < len(p)
	if stopped {
		keep = nil // what is kept is a prefix: after a gap nothing is
	}
	if file == nil && size+int64(len(keep)) > o.memLimit() {
		file, err = o.spill()
	}
	n := 0
	if file != nil {
		n, err = file.append(keep, size)
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.err = err
	case file == nil:
		n = len(keep)
		o.mem.append(keep)
	}
	o.lines.add(size, keep[:n])
	o.size += int64(n)
	o.dropped += int64(len(p) - n)
	first = over && !stopped
	o.full = o.full || first
	o.wakeLocked()
	return first, nil
}

// memLimit returns the number of bytes that need no file.
func (o *TaskOutput) memLimit() int64 {
	if o.cfg.Through {
		return 0
	}
	return cmp.Or(o.cfg.MemLimit, DefaultMemLimit)
}

func (o *TaskOutput) limit() int64 { return cmp.Or(o.cfg.Limit, DefaultLimit) }

// spill moves everything to a file. The caller holds append, so nothing is
// added meanwhile, and readers go on reading from memory.
func (o *TaskOutput) spill() (*file, error) {
	dir := cmp.Or(o.cfg.Dir, o.own)
	if dir == nil {
		o.own = new(Dir)
		dir = o.own
	}
	file, err := dir.create(cmp.Or(o.cfg.Name, rand.Text()) + fileSuffix)
	if err != nil {
		return nil, err
	}
	for i, chunk := range o.mem {
		if _, err := file.append(chunk, int64(i)*chunkSize); err != nil {
			return nil, errors.Join(err, file.discard())
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.file, o.mem = file, nil
	return file, nil
}

// ReadFrom appends everything that r gives until its end or its error. It
// never stops reading because the output is full: whoever writes at the other
// end of a pipe is not blocked by that.
func (o *TaskOutput) ReadFrom(r io.Reader) (n int64, err error) {
	buf := buffers.Get().(*[chunkSize]byte)
	defer buffers.Put(buf)
	for {
		got, err := r.Read(buf[:])
		n += int64(got)
		if got > 0 {
			if _, werr := o.Write(buf[:got]); werr != nil {
				return n, werr
			}
		}
		switch {
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// buffers are for ReadFrom: as large as a pipe is by default.
var buffers = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// End says that no more bytes will come: a Write now fails, and readers that
// follow reach io.EOF. An output that has ended holds no descriptor. Ending
// twice does nothing more.
func (o *TaskOutput) End() {
	o.append.Lock()
	defer o.append.Unlock()
	o.mu.Lock()
	o.ended = true
	file := o.file
	o.wakeLocked()
	o.mu.Unlock()
	if file != nil {
		file.end() // what was written is there, whatever closing says
	}
}

// Close ends the output and forgets what is in memory; nothing can be read any
// more. The file stays if it is in a [Dir] that was given, and is removed
// otherwise. Closing twice does nothing more.
func (o *TaskOutput) Close() error {
	o.End()
	o.mu.Lock()
	closed := o.closed
	o.closed, o.mem = true, nil
	o.mu.Unlock()
	if closed || o.own == nil {
		return nil
	}
	return o.own.Close()
}

// Discard closes the output and removes its file, if it has one: for an output
// that turned out not to be wanted.
func (o *TaskOutput) Discard() error {
	err := o.Close()
	o.mu.Lock()
	file := o.file
	o.mu.Unlock()
	if file == nil || o.own != nil {
		return err
	}
	return errors.Join(err, file.dir.remove(file.name))
}

// Stat describes an output at one moment.
type Stat struct {
	Size    int64  `json:"size"`             // bytes kept
	Dropped int64  `json:"dropped,omitzero"` // bytes that came after them and were not kept
	Full    bool   `json:"full,omitzero"`    // some were dropped because of the limit
	Path    string `json:"path,omitzero"`    // the file, if there is one
	Ended   bool   `json:"ended,omitzero"`   // no more will come
	Err     error  `json:"-"`                // why the disk took no more, or nil
}

// Stat returns how much the output holds, and how it is doing.
func (o *TaskOutput) Stat() Stat {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := Stat{
		Size: o.size, Dropped: o.dropped, Full: o.full,
		Ended: o.ended, Err: o.err,
	}
	if o.file != nil {
		st.Path = o.file.path
	}
	return st
}

func (o *TaskOutput) wakeLocked() {
	if o.grown != nil {
		close(o.grown)
		o.grown = nil
	}
}
