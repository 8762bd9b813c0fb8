package notify

// level returns the index of a priority: everything up to Next, or the rest.
func level(p Priority) int {
	if p <= Next {
		return 0
	}
	return 1
}

// An entry is a notification in a queue. Its fields are guarded by the queue's
// mu, but the notification does not change once it has been on lease.
type entry struct {
	Notification

	level      int
	seq        uint64 // grows with each push
	leased     bool
	retracted  bool
	prev, next *entry // in the list of what is pending
}

// A list holds entries, oldest first.
type list struct {
	first, last *entry
	n           int
}

func (l *list) append(e *entry) {
	e.prev, e.next = l.last, nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.n++
}

func (l *list) remove(e *entry) {
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.n--
}
