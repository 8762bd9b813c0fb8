package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// openJournal opens the journal in dir, or makes one, and returns the tasks that
// it knows, oldest first. A record that was cut short at its end is cut off. A
// journal that is corrupt is set aside under another name, and what stands
// before the wrong record is kept; j.err says so.
func openJournal(dir *fsys.Dir) (j *journal, tasks []*saved, err error) {
	log, err := dir.ReadFile(journalName, journalMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	tasks, end, corrupt := replay(log)
	j = &journal{dir: dir}
	switch {
	case corrupt != nil:
		j.err = fmt.Errorf("%s, kept as %s.corrupt: %w", dir.Path(), journalName, corrupt)
		err = errors.Join(dir.WriteFile(journalName+".corrupt", log), j.rewrite(tasks))
	case len(log) > compactAt && len(log) > 2*imageSize(tasks):
		err = j.rewrite(tasks)
	case log == nil:
		j.file, err = dir.Create(journalName)
	default:
		if j.file, err = dir.Open(journalName); err == nil && end < len(log) {
			err = j.file.Truncate(int64(end))
		}
		j.size = int64(end)
	}
	if err != nil {
		return nil, nil, errors.Join(err, j.close())
	}
	return j, tasks, nil
}

// replay returns the tasks that a log knows, in the order of their first
// records, and the length of its whole records.
func replay(log []byte) (tasks []*saved, end int, err error) {
	records, end, err := record.Split(log)
	known := make(map[ID]*saved)
	for _, data := range records {
		var rec journalRecord
		if jerr := json.Unmarshal(data, &rec); jerr != nil {
			return tasks, end, errors.Join(err, jerr)
		}
		t := known[rec.ID]
		switch {
		case rec.State != nil && t == nil:
			t = &saved{state: *rec.State, rev: rec.Rev}
			known[rec.ID] = t
			tasks = append(tasks, t)
		case t == nil: // nothing to change
		case rec.State != nil && rec.Rev >= t.rev:
			t.state, t.rev = *rec.State, rec.Rev
		}
		switch {
		case t == nil:
		case rec.Kind == recTold:
			t.told = rec.Time
		case rec.Kind == recEvicted:
			delete(known, rec.ID)
			t.state.ID = ""
		}
	}
	kept := tasks[:0]
	for _, t := range tasks {
		if t.state.ID != "" {
			kept = append(kept, t)
		}
	}
	return kept, end, err
}

// image returns a log that says what tasks are, and no more.
func image(tasks []*saved) (log []byte, err error) {
	for _, t := range tasks {
		log, err = appendRecord(log, journalRecord{Kind: recState, ID: t.state.ID, Time: t.state.Created, Rev: t.rev, State: &t.state})
		if err == nil && !t.told.IsZero() {
			log, err = appendRecord(log, journalRecord{Kind: recTold, ID: t.state.ID, Time: t.told})
		}
		if err != nil {
			return nil, err
		}
	}
	return log, nil
}

func imageSize(tasks []*saved) int {
	log, _ := image(tasks)
	return len(log)
}

func appendRecord(log []byte, rec journalRecord) ([]byte, error) {
	data := rec.appendJSON(make([]byte, 0, 512))
	if len(data) > record.Max {
		return log, fmt.Errorf("a record of %d bytes", len(data))
	}
	return record.Append(log, data), nil
}

// rewrite replaces the journal by one that says what tasks are.
func (j *journal) rewrite(tasks []*saved) error {
	log, err := image(tasks)
	if err != nil {
		return err
	}
	if err := j.dir.WriteFile(journalName, log); err != nil {
		return err
	}
	j.file, err = j.dir.Open(journalName)
	j.size = int64(len(log))
	return err
}

// append appends a record. After an append that failed, the next one writes over
// what it may have left.
func (j *journal) append(rec journalRecord) (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	log, err := appendRecord(nil, rec)
	if err == nil {
		j.reserveFor(int64(len(log)))
		_, err = j.file.WriteAt(log, j.size)
	}
	if err != nil {
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
	// What was set aside beyond the end is given back.
	return errors.Join(j.err, j.file.Truncate(j.size), j.file.Close())
}
