// Package afoot holds no code. It is the map of the packages with which an
// agent harness runs work in the background: start a command or a function,
// keep thinking, and be told exactly once what became of it, before the next
// call to the model.
//
//   - [github.com/afoot-go/afoot/task] is the registry: what runs, how far it has
//     got, how to stop it, and who tells the model that it ended.
//   - [github.com/afoot-go/afoot/task/shell] runs commands as tasks.
//   - [github.com/afoot-go/afoot/notify] is the queue between background work and
//     the next call to the model.
//   - [github.com/afoot-go/afoot/output] keeps what a task prints.
//   - [github.com/afoot-go/afoot/task/tasktest] and
//     [github.com/afoot-go/afoot/notify/notifytest] help to test code that uses them.
//
// The loop of a harness, in short (README.md and the example of package task
// have it whole):
//
//	news := inbox.Lease(take, tasks.Attachments(task.Root)...)
//	reply, err := model.Call(ctx, append(conversation, news.Text()))
//	if err != nil {
//		news.Return() // the model never saw it
//		continue
//	}
//	news.Commit() // told
//	if reply.Done {
//		take = notify.Later
//		inbox.Wait(ctx, take)
//	}
//
// There is no daemon, no database and no singleton: a program may embed two.
package afoot
