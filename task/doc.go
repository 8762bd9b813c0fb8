// Package task describes background work to a harness: what is running, how
// far it has got, how to stop it, and who tells the model that it ended.
//
// Start from [Open], which returns a [Registry]. Work gets into it in three
// ways: a kind's own starter (package task/shell starts commands),
// [Registry.Go] for a function, and [Registry.Register] with [Handle.Start] and
// [Handle.Finish] for anything else. All of them give a [Handle].
//
// A [Task] promises one thing, that it can be killed. Everything a harness
// shows about it lives in a [State], a plain value that encodes to JSON.
//
// # Announcing the end
//
// Several goroutines may see a task end at the same moment: the one that ran
// it, one that killed it, one that waits for it. The end is reached once: the
// first Finish sets the terminal state, then the latch is claimed
// ([StateBase.ClaimNotification]), then one notification is pushed to
// [Config.Notify], then waiters wake. No notification is pushed if the result
// was taken ([Handle.Take]) or if somebody claimed the latch by hand: they tell
// the model themselves. An end is told when the lease that carried its
// notification is committed, or when it was taken.
//
// # Owners
//
// A task belongs to the owner in the context of the call that started it
// ([WithOwner]), and its notifications are addressed to that owner. A call that
// takes an id or lists tasks looks at the owner in its own context: the root
// ([Root], a context without an owner) sees every task, any other owner only
// its own, and the ids of others answer [ErrNotFound].
//
// # Locks and callbacks
//
// Hooks, sinks, Task methods and functions given to Update run without any lock
// of this package and may call back into it.
package task
