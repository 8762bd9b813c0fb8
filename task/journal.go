package task

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/afoot-go/afoot/internal/fsys"
	"github.com/afoot-go/afoot/internal/record"
)

// What happened to a task, as the journal of its session has it.
const (
	recIntent  = "intent"  // registered: before anything of it is started
	recStarted = "started" // at work
	recState   = "state"   // changed in some other way
	recEnd     = "end"     // ended: before anybody is told
	recTold    = "told"    // the model knows of the end
	recEvicted = "evicted" // forgotten
)

const (
	journalName = "journal"

	// journalMax is the size of the largest journal that is read. One task is
	// about half a kilobyte.
	journalMax = 1 << 30

	// reserve is the space kept for the journal beyond its end, so that ends can
	// be recorded when the disk is full.
	reserve = 64 << 10
)

// compactAt is the size below which a journal is left as it is. Tests lower it.
var compactAt = 1 << 20

// A journalRecord is one entry of a journal: the state after the change, or only
// the id where that says all.
type journalRecord struct {
	Kind  string    `json:"kind"`
	ID    ID        `json:"id"`
	Time  time.Time `json:"time"`
	Rev   uint64    `json:"rev,omitzero"` // of State: the highest counts, whatever the order of the records
	State *State    `json:"state,omitzero"`
}

// A journal is the record of a session's tasks that outlives the host. It is
// appended to without a sync: what has been written survives the process, not
// the loss of power.
type journal struct {
	dir *fsys.Dir

	mu       sync.Mutex // the log's append lock: held across the write
	file     *fsys.File
	size     int64 // up to the end of the last whole record
	reserved int64 // the file has space up to here
	err      error // why an append failed first
}

// A saved task is what a journal says about it.
type saved struct {
	state State
	rev   uint64
	told  time.Time // zero: not yet
}

// A history is what a journal says.
type history struct {
	tasks  []*saved // oldest first
	unread [][]byte // records that cannot be understood, a later version's perhaps: they are kept
	end    int      // the length of the whole records
}

// openJournal opens the journal in dir, or makes one, and returns what it says. A
// record that was cut short at its end is cut off. A journal that is corrupt is set
// aside under another name, and what stands before the wrong record is kept; j.err
// says so, and of what could not be understood too.
func openJournal(dir *fsys.Dir) (j *journal, h history, err error) {
	log, err := dir.ReadFile(journalName, journalMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, h, err
	}
	h, corrupt := replay(log)
	j = &journal{dir: dir}
	if len(h.unread) > 0 {
		j.err = fmt.Errorf("task: %s: %d records that cannot be understood are kept and left alone", dir.Path(), len(h.unread))
	}
	switch {
	case corrupt != nil:
		aside := journalName + ".corrupt-" + strings.ToLower(rand.Text())
		j.err = fmt.Errorf("task: %s, kept as %s: %w", dir.Path(), aside, corrupt)
		if err = dir.WriteFile(aside, log); err == nil {
			err = j.rewrite(h)
		}
	case len(log) > compactAt && len(log) > 2*len(h.image()):
		err = j.rewrite(h)
	case log == nil:
		j.file, err = dir.Create(journalName)
	default:
		if j.file, err = dir.Open(journalName); err == nil && h.end < len(log) {
			err = j.file.Truncate(int64(h.end))
		}
		j.size = int64(h.end)
	}
	if err != nil {
		return nil, h, errors.Join(err, j.close())
	}
	return j, h, nil
}

// replay returns what a log says.
func replay(log []byte) (h history, err error) {
	records, end, err := record.Split(log)
	h.end = end
	known := make(map[ID]*saved)
	evicted := make(map[ID]bool)
	for _, data := range records {
		rec, ok := decode(data)
		switch t := known[rec.ID]; {
		case !ok:
			h.unread = append(h.unread, data)
		case evicted[rec.ID]: // what a handle that is still about has changed
		case rec.Kind == recEvicted:
			evicted[rec.ID] = true
			delete(known, rec.ID)
		case rec.Kind == recTold:
			if t != nil {
				t.told = rec.Time
			}
		case t == nil:
			known[rec.ID] = &saved{state: *rec.State, rev: rec.Rev}
			h.tasks = append(h.tasks, known[rec.ID])
		case rec.Rev >= t.rev:
			t.state, t.rev = *rec.State, rec.Rev
		}
	}
	h.tasks = slices.DeleteFunc(h.tasks, func(t *saved) bool { return known[t.state.ID] != t })
	return h, err
}

// decode returns a record, and reports whether it is one that this version writes.
func decode(data []byte) (rec journalRecord, ok bool) {
	if json.Unmarshal(data, &rec) != nil {
		return rec, false
	}
	if _, err := ParseID(string(rec.ID)); err != nil {
		return rec, false // no file is looked for under it
	}
	switch rec.Kind {
	case recTold, recEvicted:
		return rec, true
	case recIntent, recStarted, recState, recEnd:
		return rec, rec.State != nil && rec.State.ID == rec.ID
	}
	return rec, false
}

// image returns a log that says the same, and no more.
func (h history) image() (log []byte) {
	for _, t := range h.tasks {
		log = appendRecord(log, journalRecord{Kind: recState, ID: t.state.ID, Time: t.state.Created, Rev: t.rev, State: &t.state})
		if !t.told.IsZero() {
			log = appendRecord(log, journalRecord{Kind: recTold, ID: t.state.ID, Time: t.told})
		}
	}
	for _, data := range h.unread {
		log = record.Append(log, data)
	}
	return log
}

func appendRecord(log []byte, rec journalRecord) []byte {
	return record.Append(log, rec.appendJSON(make([]byte, 0, 512)))
}

// rewrite replaces the journal by one that says what h does.
func (j *journal) rewrite(h history) error {
	log := h.image()
	if err := j.dir.WriteFile(journalName, log); err != nil {
		return err
	}
	var err error
	j.file, err = j.dir.Open(journalName)
	j.size = int64(len(log))
	return err
}

// append appends a record. After an append that failed, the next one writes over
// what it may have left.
func (j *journal) append(rec journalRecord) (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	log := appendRecord(nil, rec)
	j.reserveFor(int64(len(log)))
	if _, err = j.file.WriteAt(log, j.size); err != nil {
		j.file.Truncate(j.size) // what was written of it would stand behind a shorter one
		err = fmt.Errorf("task: journal: %w", err)
		if j.err == nil {
			j.err = err
		}
		return err
	}
	j.size += int64(len(log))
	return nil
}

// reserveFor keeps space beyond the end. That there is none is no error: the
// write will say so if it has to.
func (j *journal) reserveFor(n int64) {
	if j.size+n+reserve/2 > j.reserved {
		if j.file.Reserve(j.size, n+reserve) == nil {
			j.reserved = j.size + n + reserve
		}
	}
}

// close returns the first error of an append besides its own.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return j.err
	}
	err := j.err
	if j.reserved > 0 { // what was set aside beyond the end is given back
		err = errors.Join(err, j.file.Truncate(j.size))
	}
	return errors.Join(err, j.file.Close())
}
