// Package tasktest helps to test code that works with package task.
//
// [Open] gives a registry that fails the test over anything left running or
// untold, [NewFake] a task without a process that the test itself prints for,
// stalls and ends, and [Run] checks a Task of one's own against the promises of
// the interface. All of it runs inside testing/synctest, as far as the tasks
// under test do.
//
// It uses the standard library alone.
package tasktest
