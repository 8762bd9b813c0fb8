package notify

// FoldAfter is the number of progress and monitor notices that a [Queue] keeps
// apart. While more than that are pending, a new one of the same source, task
// and priority as a pending one replaces it: the new text stays, at the end of
// the order, and Folded says how many earlier ones it stands for. Those that name
// no task count as one task. A notice with a status or a Told never folds, nor
// does any other source.
const FoldAfter = 100

// folds reports whether a later notice may stand for n. What somebody waits
// for, an end, a fire or a user's word, never folds.
func (n *Notification) folds() bool {
	return (n.Source == Progress || n.Source == Monitor) && n.Status == "" && n.Told == nil
}

// A stream is what a notice may fold within.
type stream struct {
	source Source
	task   string
	level  int
}

func (e *entry) stream() stream { return stream{e.Source, e.TaskID, e.level} }

// foldLocked lets e, which is about to be appended, stand for the last pending
// notice of its stream, if there are so many notices that this is called for.
func (q *Queue) foldLocked(e *entry) {
	if q.notices <= FoldAfter || !e.folds() {
		return
	}
	if old := q.latest[e.stream()]; old != nil {
		e.Folded += old.Folded + 1
		q.removeLocked(old)
	}
}

// relatestLocked finds the latest of the stream that e, now removed, was in.
func (q *Queue) relatestLocked(e *entry) {
	if !e.folds() || q.latest[e.stream()] != e {
		return
	}
	delete(q.latest, e.stream())
	for older := q.pending[e.level].last; older != nil; older = older.prev {
		if older.folds() && older.stream() == e.stream() {
			q.latest[e.stream()] = older
			return
		}
	}
}
