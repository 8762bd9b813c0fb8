package task

// SetCompactAt has journals rewritten when they are larger than size, and returns
// what puts the old size back.
func SetCompactAt(size int) (restore func()) {
	old := compactAt
	compactAt = size
	return func() { compactAt = old }
}
