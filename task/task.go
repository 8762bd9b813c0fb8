package task

import (
	"context"
	"errors"
)

// ErrGone is what a kind says of a task that runs no more.
var ErrGone = errors.New("task: gone")

// A Task is background work that can be stopped.
// Implementations must be safe for concurrent use.
//
// (Some descriptions give a task a name and a type as well. Here both are
// data, in [State].)
type Task interface {
	// Kill asks the task to stop and waits until it has.
	//
	//   - When Kill returns nil the task has stopped.
	//   - Killing a task that has already ended returns nil.
	//   - Of any number of concurrent calls each returns as one alone would.
	//   - If ctx ends first, Kill returns ctx.Err() and the task goes on
	//     stopping in the background; Kill may be called again.
	//   - Kill never waits for anyone to read the task's output.
	//
	// A task that reports its own end with [Handle.Finish] does so before Kill
	// returns; of one that does not, the registry records that it was killed.
	Kill(ctx context.Context) error
}

// A Kind holds what the tasks of one type share for the life of a registry.
// One kind serves one registry.
type Kind interface {
	// Type returns the type of the kind's tasks.
	Type() Type

	// Recover takes up a task that had not ended when its host died. It returns
	// the task as it runs now, or an error that matches ErrGone if it runs no
	// more; then, and with any other error, the registry ends it as failed. A
	// task that the host alone kept alive Recover first puts an end to.
	Recover(ctx context.Context, h *Handle) (Task, error)

	// Close releases what the kind holds. The registry calls it once, from its
	// own Close, when the tasks have been killed.
	Close() error
}
