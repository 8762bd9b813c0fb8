// Package output keeps what a task prints: all of it up to a limit, exactly as
// it was printed, and readable while the task still runs.
//
// Start from [TaskOutput]. It is an [io.Writer] for a function and an
// [io.ReaderFrom] for a pipe, begins in memory, and moves to a file of its own
// when it outgrows it.
//
// # What is kept
//
// The kept bytes are a prefix of what was written, and an offset counts raw
// bytes from its start: an offset stays valid for the life of the output. What
// came after the limit, or after the disk refused a write, is dropped and
// counted; [TaskOutput.Stat] says how much and why. A writer is never blocked
// by a reader, nor is it told to stop: ending the task is up to its owner
// ([Config.OnLimit]).
//
// # Raw bytes and views
//
// [TaskOutput.ReadAt], [TaskOutput.Since], [TaskOutput.Tail] and
// [TaskOutput.Follow] return raw bytes. [TaskOutput.View] returns text that
// may be shown to a person or a model: valid UTF-8 with control characters
// made visible, cut to a number of characters in the middle, with a line that
// says what is missing.
package output
