package output

import (
	"context"
	"io"
)

// MaxSince is the number of bytes that one call of [TaskOutput.Since] returns
// at most.
const MaxSince = 1 << 20

// ReadAt reads into p from offset off, as [io.ReaderAt] says: it returns
// io.EOF if it reaches the end of what is there now.
func (o *TaskOutput) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, ErrOffset
	}
	o.mu.Lock()
	file, n := o.file, max(0, min(int64(len(p)), o.size-off))
	if o.closed {
		o.mu.Unlock()
		return 0, ErrClosed
	}
	if file == nil {
		o.mem.readAt(p[:n], off)
	}
	o.mu.Unlock()

	if file != nil && n > 0 {
		if got, err := file.readAt(p[:n], off); err != nil {
			return got, err
		}
	}
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// readable returns ErrClosed after Close.
func (o *TaskOutput) readable() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ErrClosed
	}
	return nil
}

// A Chunk is a piece of output.
type Chunk struct {
	Bytes   []byte `json:"bytes"`            // raw
	Next    int64  `json:"next"`             // the offset after them, to ask from next time
	Dropped int64  `json:"dropped,omitzero"` // bytes the output has dropped in all, up to now
}

// Since returns what was printed from offset on, at most limit bytes of it, or
// MaxSince if limit is zero, negative or larger than that. Nothing new, or an
// offset past the end, is an empty chunk whose Next is offset; an offset below
// zero is ErrOffset.
//
// Reading from 0, and then from each chunk's Next, gives every kept byte once.
func (o *TaskOutput) Since(offset int64, limit int) (Chunk, error) {
	if limit <= 0 || limit > MaxSince {
		limit = MaxSince
	}
	st := o.Stat()
	c := Chunk{Next: offset, Dropped: st.Dropped}
	if offset >= st.Size {
		return c, o.readable()
	}
	p := make([]byte, min(int64(limit), st.Size-max(0, offset)))
	n, err := o.ReadAt(p, offset)
	c.Bytes, c.Next = p[:n], offset+int64(n)
	return c, err
}

// Tail returns the last n bytes, or all if there are fewer, and at most
// MaxSince.
func (o *TaskOutput) Tail(n int) (Chunk, error) {
	n = max(0, min(n, MaxSince))
	from := max(0, o.Stat().Size-int64(n))
	if n == 0 {
		return Chunk{Next: from}, o.readable()
	}
	return o.Since(from, n)
}

// Follow returns a reader of everything from offset on that waits at the end
// for more. It returns io.EOF after the last byte once the output has ended,
// and ctx.Err() if ctx ends first; bytes that are there already win over both.
//
// The reader is for one goroutine.
func (o *TaskOutput) Follow(ctx context.Context, offset int64) io.Reader {
	return &follower{ctx: ctx, o: o, off: offset}
}

type follower struct {
	ctx context.Context // the lifetime of the reader, as Follow says
	o   *TaskOutput
	off int64
}

func (f *follower) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, err := f.o.ReadAt(p, f.off)
		f.off += int64(n)
		if n > 0 {
			return n, nil
		}
		if err != io.EOF {
			return 0, err
		}
		if f.o.endsAt(f.off) {
			return 0, io.EOF
		}
		select {
		case <-f.o.More(f.off):
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
}

// endsAt reports whether the output has ended at or before off.
func (o *TaskOutput) endsAt(off int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended && o.size <= off
}

// ready is a channel that is closed.
var ready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// More returns a channel that is closed as soon as there is something to read
// from offset on or the output has ended, for use in a select. It is asked for
// anew each time.
func (o *TaskOutput) More(offset int64) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size > offset || o.ended {
		return ready
	}
	if o.grown == nil {
		o.grown = make(chan struct{})
	}
	return o.grown
}
