package task

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/afoot-go/afoot/notify"
)

// attachLimit is the number of characters of new output in all attachments of
// one lease; ResultLimit is that of each.
const attachLimit = 8_000

// Attachments returns the new output of owner's running tasks, as notifications
// without a status: what was printed since the model was last shown something,
// clipped to 2,000 characters a task and 8,000 in all, not counting the line that
// says what was left out. They are meant to go into
// [notify.Queue.Lease]; committing that lease is what moves each task on to its
// next output, so that a call that failed shows the same again. A task for which
// no room is left comes first another time.
func (r *Registry) Attachments(owner Owner) []notify.Notification {
	r.evictDue(time.Now())
	running := r.handles(func(e *entry) bool {
		return e.ownerLocked() == owner && e.base.status() == Running
	})
	slices.SortStableFunc(running, func(a, b *Handle) int { return a.shown().Compare(b.shown()) })

	var news []notify.Notification
	room := attachLimit
	for _, h := range running {
		if room <= 0 {
			break
		}
		n, ok := h.attachment(min(ResultLimit, room))
		if ok {
			news = append(news, n)
			room -= utf8.RuneCountInString(n.Result)
		}
	}
	return news
}

// shown returns when the model was last shown output of the task.
func (h *Handle) shown() time.Time {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	return h.e.shown
}

// attachment returns what is new in the task's output, if anything is.
func (h *Handle) attachment(limit int) (notify.Notification, bool) {
	st := h.State()
	v, err := h.e.out.View(st.OutputTold, limit)
	if err != nil || v.Text == "" {
		return notify.Notification{}, false
	}
	n := h.e.notification(st)
	n.ID = fmt.Sprintf("%s.%d+%d", h.e.id, st.Run, v.Next)
	n.Source = notify.Progress
	n.Summary = fmt.Sprintf("Background task \"%s\" is running: %d bytes of new output", st.Name(), v.Next-st.OutputTold)
	n.Result, n.Time = v.Text, time.Now()
	n.Told = func() error { return h.r.outputTold(h.e, v.Next) }
	return n, true
}

// outputTold records that the model has been shown the output up to next.
func (r *Registry) outputTold(e *entry, next int64) error {
	r.mu.Lock()
	e.shown = time.Now()
	e.base.change(func(s *State) { s.OutputTold = max(s.OutputTold, next) })
	r.mu.Unlock()
	return r.persist(e, recState)
}
