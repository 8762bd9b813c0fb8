package output

import "bytes"

// indexBlock is the number of output bytes that one count stands for: 5 GiB of
// output take 5,120 counts.
const indexBlock = 1 << 20

// A lineIndex counts the newlines in each block of an output.
type lineIndex []int32

// add counts the newlines of p, which was appended at offset off.
func (x *lineIndex) add(off int64, p []byte) {
	for len(p) > 0 {
		block := int(off / indexBlock)
		if block == len(*x) {
			*x = append(*x, 0)
		}
		n := min(int64(len(p)), indexBlock-off%indexBlock)
		(*x)[block] += int32(bytes.Count(p[:n], []byte{'\n'}))
		p, off = p[n:], off+n
	}
}

// sum returns the newlines in the blocks from first up to last, without last.
func (x lineIndex) sum(first, last int64) (n int64) {
	for i := first; i < last; i++ {
		n += int64(x[i])
	}
	return n
}

// newlines returns the number of newlines from offset from up to to. It reads
// at most two blocks, but for the first time that an earlier process's output is
// asked for: that is read whole.
func (o *TaskOutput) newlines(from, to int64) (int64, error) {
	if err := o.index(); err != nil {
		return 0, err
	}
	first, last := (from+indexBlock-1)/indexBlock, to/indexBlock
	if first >= last {
		return o.scanNewlines(from, to)
	}
	head, err := o.scanNewlines(from, first*indexBlock)
	if err != nil {
		return 0, err
	}
	tail, err := o.scanNewlines(last*indexBlock, to)
	o.mu.Lock()
	defer o.mu.Unlock()
	return head + o.lines.sum(first, last) + tail, err
}

func (o *TaskOutput) scanNewlines(from, to int64) (n int64, err error) {
	buf := make([]byte, min(chunkSize, to-from))
	for from < to {
		p := buf[:min(int64(len(buf)), to-from)]
		if _, err := o.ReadAt(p, from); err != nil {
			return n, err
		}
		n += int64(bytes.Count(p, []byte{'\n'}))
		from += int64(len(p))
	}
	return n, nil
}

// index counts the lines of an earlier process's output, once.
func (o *TaskOutput) index() error {
	o.mu.Lock()
	unread, size := o.unread, o.size
	o.mu.Unlock()
	if !unread {
		return nil
	}
	var lines lineIndex
	buf := make([]byte, chunkSize)
	for off := int64(0); off < size; {
		n, err := o.ReadAt(buf[:min(chunkSize, size-off)], off)
		if err != nil {
			return err
		}
		lines.add(off, buf[:n])
		off += int64(n)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines, o.unread = lines, false
	return nil
}
