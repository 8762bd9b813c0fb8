package task_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
)

// What README.md shows stands between the two marks.

// README loop begins.

func loop(ctx context.Context, model Model, conversation []string) error {
	var inbox notify.Queue
	sh := shell.New(shell.Config{})
	tasks, err := task.Open(ctx, task.Config{Notify: &inbox, Kinds: []task.Kind{sh}})
	if err != nil {
		return err
	}
	defer tasks.Close() // kills what runs, bounded, and says what became of it

	take := notify.Next // between the calls of one turn: what is urgent
	for {
		news := inbox.Lease(take, tasks.Attachments(task.Root)...)
		request := conversation
		if !news.Empty() {
			request = append(request, news.Text())
		}
		reply, err := model.Call(ctx, request)
		if err != nil {
			news.Return() // the model never saw it: back in the queue, same order
			if err := backoff(ctx, err); err != nil {
				return err
			}
			continue
		}
		conversation = append(request, reply.Text)
		if err := news.Commit(); err != nil { // told
			log.Print("may be told again after a restart: ", err)
		}
		for _, call := range reply.Calls {
			h, err := sh.Start(ctx, tasks, shell.Command{Script: call.Script, ToolUseID: call.ID})
			if err != nil {
				conversation = append(conversation, "not started: "+err.Error())
				continue
			}
			conversation = append(conversation, fmt.Sprintf("%s runs in the background", h.ID()))
		}
		take = notify.Next
		if reply.Done { // turn over: everything, and sleep until there is something
			if tasks.Idle(task.Root) {
				return nil
			}
			take = notify.Later
			if err := inbox.Wait(ctx, take); err != nil {
				return err
			}
		}
	}
}

// README loop ends.

// Model stands for whatever calls a language model.
type Model interface {
	Call(ctx context.Context, conversation []string) (Reply, error)
}

// Reply is what a model answers.
type Reply struct {
	Text  string
	Calls []Call
	Done  bool // the turn is over
}

// Call is a tool call.
type Call struct{ ID, Script string }

func backoff(ctx context.Context, _ error) error {
	select {
	case <-time.After(time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// script answers one request after the other, and prints the news in it.
type script struct {
	replies []Reply
	fail    bool // the next call
}

func (s *script) Call(_ context.Context, conversation []string) (Reply, error) {
	if last := conversation[len(conversation)-1]; strings.HasPrefix(last, "<task_notification>") {
		news, err := notify.Parse(last)
		if err != nil {
			return Reply{}, err
		}
		if s.fail { // the network drops the first call that carries news
			s.fail = false
			return Reply{}, context.DeadlineExceeded
		}
		for _, n := range news {
			fmt.Println("told:", n.Summary)
		}
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply, nil
}

// The loop of a harness: it starts what the model asks for, goes on calling the
// model, and shows it each end exactly once, also when a call fails.
func Example_loop() {
	model := &script{fail: true, replies: []Reply{
		{Text: "I build first.", Calls: []Call{{ID: "toolu_01", Script: "echo built"}}},
		{Text: "I think on.", Done: true},
		{Text: "It is built.", Done: true},
	}}
	fmt.Println("loop:", loop(context.Background(), model, []string{"build it"}))
	// Output:
	// told: Background command "echo built" completed (exit code 0)
	// loop: <nil>
}

// README.md shows the loop as it is compiled here.
func TestREADMEShowsTheLoop(t *testing.T) {
	source, err := os.ReadFile("loop_test.go")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(source), "// README loop begins.\n\n")
	require.True(t, ok)
	code, _, ok = strings.Cut(code, "\n// README loop ends.\n")
	require.True(t, ok)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+code+"```\n")
}
