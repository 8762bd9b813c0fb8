package output

// chunkSize is the size of a piece of memory, and of a read from a pipe.
const chunkSize = 64 << 10

// A memory holds bytes in chunks: all but the last are chunkSize long, so that
// growing copies little and an offset finds its chunk by division.
type memory [][]byte

func (m *memory) append(p []byte) {
	for len(p) > 0 {
		last := len(*m) - 1
		if last < 0 || len((*m)[last]) == chunkSize {
			*m = append(*m, nil)
			last++
		}
		chunk := &(*m)[last]
		n := min(len(p), chunkSize-len(*chunk))
		if last > 0 && *chunk == nil {
			*chunk = make([]byte, 0, chunkSize) // the first one grows: most outputs are small
		}
		*chunk = append(*chunk, p[:n]...)
		p = p[n:]
	}
}

// readAt fills p from offset off; the caller knows that so much is there.
func (m memory) readAt(p []byte, off int64) {
	for len(p) > 0 {
		n := copy(p, m[off/chunkSize][off%chunkSize:])
		p, off = p[n:], off+int64(n)
	}
}
