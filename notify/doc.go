// Package notify carries news from background work to the next call of a model:
// this task ended, this one stalled, this schedule fired, the user said that.
//
// Start from a [Queue]: its zero value is ready, whatever runs in the background
// pushes, and the loop that calls the model leases. A program with several
// agents has a [Hub], which keeps a queue for each.
//
// # Leasing
//
// A notification stays in its queue until the host says that the model was
// told. The host leases what is pending, puts [Lease.Text] into the request, and
// then does one of two things:
//
//   - [Lease.Commit] if the call succeeded. The notifications are told: gone
//     from the queue, and their sources know it through [Notification].Told.
//   - [Lease.Return] if it failed. They are pending again, in the same order
//     and before whatever came since, without those that were retracted.
//
// One lease of a queue is open at a time. Leasing again puts the open one back
// first, so that nothing is lost with a lease that was forgotten; the older
// lease then answers [ErrStale].
//
// What is only worth saying at this moment, such as the new output of running
// tasks, goes along as an extra of [Queue.Lease]. An extra that calls a task
// running is left out if the same lease tells of its end: a request never says
// that a task has ended and then that it runs.
//
// # When to tell
//
// [Next] is for what the model should know before its next step, [Later] for
// what can wait until its turn is over. Within a turn a host leases Next; when
// the turn is over it leases Later, which includes Next, and sleeps in
// [Queue.Wait] until there is something. For an agent whose queue a hub has
// closed there will be nothing, and Wait answers [ErrClosed].
//
// # Memory
//
// Nothing pushed is lost, and a queue has no limit, but for chatter: past
// [FoldAfter] notices the newest of a task stands for the one before it.
// A queue is in memory only. Each source keeps its own record of what it has
// pushed until it is told, and pushes it again after a restart, with the same ID.
package notify
