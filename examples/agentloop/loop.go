package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
)

// An agent is a model with background tasks and an inbox for their news.
type agent struct {
	model *model
	inbox notify.Queue
	shell *shell.Shell
	tasks *task.Registry
	show  *timeline

	told      int // ends that were told
	completed int // those of them that went well
}

// newAgent returns an agent that will carry out p with commands that run in
// dir. It has to be closed.
func newAgent(p *plan, dir string, show *timeline) (*agent, error) {
	a := &agent{model: newModel(p), shell: shell.New(shell.Config{Dir: dir}), show: show}
	var err error
	a.tasks, err = task.Open(context.Background(), task.Config{Notify: &a.inbox, Kinds: []task.Kind{a.shell}})
	return a, err
}

// run calls the model until it has nothing more to do and nothing runs. It
// returns early with ctx.Err() if ctx ends; then close ends what still runs.
func (a *agent) run(ctx context.Context) error {
	conversation := []message{{Role: user, Text: "Carry out the plan."}}
	take := notify.Next // between the calls of one turn: what is urgent
	for {
		news := a.inbox.Lease(take, a.tasks.Attachments(task.Root)...)
		request := conversation
		if !news.Empty() {
			request = append(request, message{Role: notice, Text: news.Text()})
		}
		reply, err := a.model.call(ctx, request)
		if err != nil {
			news.Return() // the model never saw it: back in the queue, same order
			return err    // a network's error may be worth another try; the script's is ctx.Err()
		}
		conversation = append(request, message{Role: assistant, Text: reply.Text})
		if err := news.Commit(); err != nil { // told
			a.show.line("note", "may be told again after a restart: %v", err)
		}
		a.showTold(news.Notifications())
		a.show.line("model", "%s", reply.Text)

		results, err := a.act(ctx, reply)
		if err != nil {
			return err
		}
		conversation = append(conversation, results...)
		take = notify.Next
		if reply.Done { // turn over: everything, and sleep until there is something
			if a.tasks.Idle(task.Root) {
				return nil // nothing will come any more
			}
			take = notify.Later
			if err := a.inbox.Wait(ctx, take); err != nil {
				return err
			}
			a.show.turn++
		}
	}
}

// act does what the model asks for. What comes of it is returned as messages
// for the next call. The error is ctx.Err().
func (a *agent) act(ctx context.Context, reply reply) ([]message, error) {
	var results []message
	for _, use := range reply.Start {
		results = append(results, a.start(ctx, use))
	}
	if reply.Stop {
		results = append(results, message{Role: tool, Text: a.stopAll(ctx)})
	}
	return results, ctx.Err()
}

// start starts an item's command in the background. It does not wait for it:
// the end comes through the inbox.
func (a *agent) start(ctx context.Context, use toolUse) message {
	h, err := a.shell.Start(ctx, a.tasks, shell.Command{
		Script: use.Item.Command, Description: use.Item.String(), ToolUseID: use.ID,
	})
	if err != nil { // the answer to the tool call says so, and no notification follows
		a.show.line("start", "%v could not start: %v", use.Item, err)
		return message{Role: tool, ToolUseID: use.ID, Failed: true, Text: err.Error()}
	}
	a.show.line("start", "%v as %s: %s", use.Item, h.ID(), clip(use.Item.Command, 100))
	return message{Role: tool, ToolUseID: use.ID, Text: "Running in the background as " + string(h.ID()) + "."}
}

// stopAll kills every running task, all at once, and waits until they are gone.
// The inbox tells of their ends like of any other.
func (a *agent) stopAll(ctx context.Context) string {
	var kills sync.WaitGroup
	n := 0
	for _, st := range a.tasks.List(ctx) {
		if st.Status.Terminal() {
			continue
		}
		n++
		kills.Go(func() { a.tasks.Kill(ctx, st.ID) }) // close says which of them resisted
	}
	kills.Wait()
	return fmt.Sprintf("Tasks killed: %d.", n)
}

// showTold shows what the model has been told, and counts the ends.
func (a *agent) showTold(news []notify.Notification) {
	for _, n := range news {
		what, ran := n.TaskID, time.Duration(0)
		if h, err := a.tasks.Get(context.Background(), task.ID(n.TaskID)); err == nil {
			st := h.State()
			what, ran = st.Description, st.Ended.Sub(st.Started)
		}
		switch n.Status {
		case "":
			a.show.line("told", "%s is running", what)
		case task.Completed.String():
			a.completed++
			fallthrough
		default:
			a.told++
			a.show.line("told", "%s %s after %.2fs", what, n.Status, ran.Seconds())
		}
		a.show.block(n.Text())
	}
}

// close ends whatever still runs, in bounded time. The model will not be called
// again, so it is the reader of the timeline who is told of the ends that are
// left. The error says what could not be ended.
func (a *agent) close() error {
	err := a.tasks.Close()
	var found *task.CloseError
	if errors.As(err, &found) {
		for _, st := range found.Left {
			a.show.line("stop", "%s had left processes, ended now", st.Description)
		}
		err = found.Err
	}
	rest, drainErr := a.inbox.Drain(notify.Later)
	a.showTold(rest)
	return errors.Join(err, drainErr)
}

// running returns the number of tasks that have not ended.
func (a *agent) running() int {
	n := 0
	for _, st := range a.tasks.List(context.Background()) {
		if !st.Status.Terminal() {
			n++
		}
	}
	return n
}
