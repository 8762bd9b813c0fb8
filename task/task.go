package task

import "context"

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

	// Close releases what the kind holds. The registry calls it once, from its
	// own Close, when the tasks have been killed.
	Close() error
}
