package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
)

const (
	maxRunning = 8                     // commands that the model lets run at once
	thinking   = 20 * time.Millisecond // how long a call to the model takes
)

// A role says who speaks in a message.
type role int

const (
	user      role = iota // the person who wants something done
	assistant             // the model
	tool                  // the result of a tool call
	notice                // the envelopes of a lease
)

// A message is one entry of the conversation with the model.
type message struct {
	Role      role
	Text      string
	ToolUseID string // of a tool's result: the call that it answers
	Failed    bool   // of a tool's result: the call did not work
}

// A toolUse is a call of the one tool that the model has for starting things.
type toolUse struct {
	ID   string
	Item item
}

// A reply is what the model wants next.
type reply struct {
	Text  string
	Start []toolUse // start these in the background
	Stop  bool      // kill everything that runs
	Done  bool      // the turn is over
}

// A model stands in for a language model: a script that decides by what it
// reads. All it knows of the tasks is in the messages, so whatever it gets
// right, the text of the envelopes was enough for.
type model struct {
	plan    *plan
	read    int            // messages of the conversation that it has read
	uses    map[string]int // the item that each tool call was for
	waiting []int          // for each item, how many others must complete first
	ready   []int          // items that wait for nobody, first come first
	running int            // items started whose end it has not been told
	done    int            // items completed
	failed  bool           // an item has not, so no other is started
	stopped bool           // it has asked for a stop
}

func newModel(p *plan) *model {
	m := &model{plan: p, uses: make(map[string]int), waiting: make([]int, len(p.items))}
	for i, it := range p.items {
		m.waiting[i] = len(it.Dependencies)
		if m.waiting[i] == 0 {
			m.ready = append(m.ready, i)
		}
	}
	return m
}

// call answers a request. The error is ctx.Err(), and then the request has not
// been read.
func (m *model) call(ctx context.Context, request []message) (reply, error) {
	select {
	case <-ctx.Done():
		return reply{}, ctx.Err()
	case <-time.After(thinking):
	}
	var heard []string
	for _, msg := range request[m.read:] {
		heard = append(heard, m.hear(msg)...)
	}
	m.read = len(request)
	return m.decide(heard), nil
}

// decide says what to do next, after what there is to say about the news.
func (m *model) decide(heard []string) reply {
	var r reply
	switch {
	case !m.failed:
		r.Start = m.next()
	case !m.stopped && m.running > 0:
		r.Stop, m.stopped = true, true
	}
	r.Done = len(r.Start) == 0 && !r.Stop
	switch total := len(m.plan.items); {
	case r.Stop:
		heard = append(heard, "I stop what else runs.")
	case len(r.Start) > 0:
		heard = append(heard, fmt.Sprintf("I start %d of %d items.", len(r.Start), total))
	case m.running > 0:
		heard = append(heard, fmt.Sprintf("I wait for %d that run.", m.running))
	default:
		heard = append(heard, fmt.Sprintf("That is all: %d of %d items are done.", m.done, total))
	}
	r.Text = strings.Join(heard, " ")
	return r
}

// next takes as many items as may start now.
func (m *model) next() []toolUse {
	n := min(len(m.ready), maxRunning-m.running)
	var uses []toolUse
	for _, i := range m.ready[:n] {
		use := toolUse{ID: fmt.Sprintf("toolu_%02d", i+1), Item: m.plan.items[i]}
		m.uses[use.ID] = i
		uses = append(uses, use)
	}
	m.ready = m.ready[n:]
	m.running += n
	return uses
}

// hear takes in one message and returns what there is to say about it.
func (m *model) hear(msg message) []string {
	switch {
	case msg.Role == tool && msg.Failed:
		return m.ended(msg.ToolUseID, task.Failed.String())
	case msg.Role != notice:
		return nil
	}
	news, err := notify.Parse(msg.Text)
	if err != nil {
		return []string{fmt.Sprintf("I cannot read that: %v.", err)}
	}
	var heard []string
	for _, n := range news {
		if n.Status != "" { // one without is about a task that goes on
			heard = append(heard, m.ended(n.ToolUseID, n.Status)...)
		}
	}
	return heard
}

// ended takes in the end of the item that a tool call was for.
func (m *model) ended(use, status string) []string {
	i, ok := m.uses[use]
	if !ok {
		return nil
	}
	delete(m.uses, use)
	m.running--
	it := m.plan.items[i]
	switch {
	case status == task.Completed.String():
		m.done++
		for _, j := range m.plan.behind[i] {
			if m.waiting[j]--; m.waiting[j] == 0 {
				m.ready = append(m.ready, j)
			}
		}
		return []string{it.ID + " is done."}
	case status == task.Killed.String() && m.stopped:
		return []string{it.ID + " was stopped."}
	}
	m.failed = true
	return []string{fmt.Sprintf("%s %s; %s.", it.ID, status, m.waitFor(i))}
}

// waitFor names the items that wait for item i.
func (m *model) waitFor(i int) string {
	const named = 10
	var ids []string
	for _, j := range m.plan.allBehind(i) {
		ids = append(ids, m.plan.items[j].ID)
	}
	switch n := len(ids); {
	case n == 0:
		return "nothing waits for it"
	case n == 1:
		return ids[0] + " waits for it"
	case n > named:
		ids = append(ids[:named], fmt.Sprintf("%d more", n-named))
	}
	last := len(ids) - 1
	return strings.Join(ids[:last], ", ") + " and " + ids[last] + " wait for it"
}
