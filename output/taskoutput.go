package output

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
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
	// ErrClosed is returned by calls on an output, or on a [Dir], after its Close.
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
	file    *fsys.File // nil while everything is in memory
	path    string     // of file
	size    int64      // bytes kept
	dropped int64      // bytes that came after the kept ones
	full    bool       // a byte was dropped because of the limit
	lines   lineIndex
	err     error         // why the disk took no more
	ended   bool          // no more bytes will come
	closed  bool          // nothing can be read any more
	grown   chan struct{} // closed when size or ended changes; nil while nobody waits
}

// New returns an empty output. It touches no file: the first Write that brings
// it over cfg.MemLimit makes one.
func New(cfg Config) (*TaskOutput, error) {
	if cfg.MemLimit < 0 || cfg.Limit < 0 {
		return nil, fmt.Errorf("output: negative limit (MemLimit %d, Limit %d)", cfg.MemLimit, cfg.Limit)
	}
	return &TaskOutput{cfg: cfg}, nil
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
	if file == nil && size+int64(len(keep)) > cmp.Or(o.cfg.MemLimit, DefaultMemLimit) {
		file, err = o.spill()
	}
	n := 0
	if file != nil {
		n, err = file.WriteAt(keep, size)
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

func (o *TaskOutput) limit() int64 { return cmp.Or(o.cfg.Limit, DefaultLimit) }

// spill moves everything to a file. The caller holds append, so nothing is
// added meanwhile, and readers go on reading from memory.
func (o *TaskOutput) spill() (*fsys.File, error) {
	dir := cmp.Or(o.cfg.Dir, o.own)
	if dir == nil {
		o.own = new(Dir)
		dir = o.own
	}
	file, path, err := dir.create(cmp.Or(o.cfg.Name, rand.Text()) + ".output")
	if err != nil {
		return nil, err
	}
	for i, chunk := range o.mem {
		if _, err := file.WriteAt(chunk, int64(i)*chunkSize); err != nil {
			return nil, errors.Join(err, file.Close(), os.Remove(path))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.file, o.path, o.mem = file, path, nil
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
// follow reach io.EOF. Ending twice does nothing more.
func (o *TaskOutput) End() {
	o.append.Lock()
	defer o.append.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.wakeLocked()
}

// Close ends the output, forgets what is in memory and closes the file. The
// file stays if it is in a [Dir] that was given, and is removed otherwise.
// Closing twice does nothing more.
func (o *TaskOutput) Close() error {
	o.End()
	o.mu.Lock()
	closed, file := o.closed, o.file
	o.closed, o.mem, o.file = true, nil, nil
	o.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	if file != nil {
		err = file.Close()
	}
	if o.own != nil {
		err = errors.Join(err, o.own.Close())
	}
	return err
}

// Stat describes an output at one moment.
type Stat struct {
	Size    int64  `json:"size"`             // bytes kept
	Lines   int64  `json:"lines"`            // newlines among them
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
	return Stat{
		Size: o.size, Lines: o.lines.total(), Dropped: o.dropped, Full: o.full,
		Path: o.path, Ended: o.ended, Err: o.err,
	}
}

func (o *TaskOutput) wakeLocked() {
	if o.grown != nil {
		close(o.grown)
		o.grown = nil
	}
}
