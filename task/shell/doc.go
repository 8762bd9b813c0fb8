// Package shell runs commands as background tasks.
//
// Make a [Shell] with [New], give it to task.Open as one of the registry's
// kinds, and start commands with [Shell.Start], or with [Shell.Run] where the
// result is wanted at once if it comes soon.
//
// # What a command gets
//
// A script runs as "bash -c" where bash is found and as "/bin/sh -c" otherwise,
// exactly as it was given: no pipefail, no profile, no rc file. It leads a
// session of its own, so that a prompt on the terminal fails instead of
// waiting; its standard input is /dev/null, its output one pipe for both
// streams, and it has no other descriptors. Its environment is the host's with
// the entries of [NonInteractive].
//
// # The end
//
// The end of the command and the end of its output are two moments. The result
// is known at the first and told at the second: when every process that had the
// pipe has closed it, when nothing has come through it for 100 ms, or after 500
// ms. A process that the command leaves behind so never delays its result, and
// what it goes on to print is still kept.
//
// Exit code 0 is completed and any other failed; so is a signal, unless it was
// ours. Killed is what somebody or a limit here has ended, whatever code the
// command then gave itself.
//
// # Kill
//
// Kill sends SIGTERM and SIGCONT to the command's process group and SIGKILL to
// what is left of it after [Config.Grace], and returns when the group is empty.
// Processes that a finished command left in its group are in the state
// (Descendants), and killing the finished task ends them. A process that has
// left the group (setsid) is not found.
//
// # Systems
//
// Linux is complete. On other Unix systems the members of a group are not
// known: a process that ignores SIGTERM and outlives the command stays. On
// Windows Start returns an error that matches errors.ErrUnsupported.
package shell
