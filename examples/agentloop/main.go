// Agentloop carries out a plan of commands the way an agent does: it starts
// what can start as background tasks, goes on with its turn, and is told before
// a later call to its model how each one ended.
//
// The model is a script, so no network is needed; everything else is real. Run
// it from a checkout and it checks this module:
//
//	go run ./examples/agentloop
//
// With -plan it carries out a plan of your own, a JSON array of items, with the
// commands running in the current directory:
//
//	[{"id": "build", "title": "Compile", "command": "make"},
//	 {"id": "test", "command": "make test", "dependencies": ["build"]}]
//
// It exits with 0 if every item completed, 1 if one failed, 2 if the plan or the
// flags are wrong, and 130 or 143 if SIGINT or SIGTERM ended it.
//
// Start reading at agent.run in loop.go. The loop there is the one to copy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// With a handler, writing to a pipe that nobody reads is an error like any
	// other. Without one it ends the program at once, and the commands live on.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	complain := func(err error) { fmt.Fprintln(stderr, "agentloop: "+plain(err.Error())) }
	file, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // parseFlags has said why
	}
	p, dir, err := loadPlan(file)
	if err != nil {
		complain(err)
		return 2
	}

	terminated, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	interrupted, stop := signal.NotifyContext(terminated, os.Interrupt)
	defer stop()
	working, cancel := context.WithCancelCause(interrupted)
	defer cancel(nil)

	show := newTimeline(stdout, cancel) // without a reader there is no point in going on
	a, err := newAgent(p, dir, show)
	if err != nil {
		complain(err)
		return 1
	}
	runErr := a.run(working)
	if runErr != nil {
		runErr = context.Cause(working)
		show.line("stop", "%v", runErr)
	}
	closeErr := a.close()
	show.print("done: %d of %d completed, %d notifications, %d left running",
		a.completed, len(p.items), a.told, a.running())

	for _, err := range []error{show.err, closeErr} {
		if err != nil {
			complain(err)
		}
	}
	switch {
	case runErr != nil && terminated.Err() != nil:
		return 128 + int(syscall.SIGTERM)
	case runErr != nil && interrupted.Err() != nil:
		return 128 + int(syscall.SIGINT)
	case runErr != nil, closeErr != nil, show.err != nil, a.completed < len(p.items):
		return 1
	}
	return 0
}

// parseFlags returns the plan file, or "" for the plan that comes with the
// program. It says on stderr what is wrong with the arguments.
func parseFlags(args []string, stderr io.Writer) (file string, err error) {
	flags := flag.NewFlagSet("agentloop", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("plan", "carry out the plan in `FILE` instead of checking this module", func(s string) error {
		if s == "" {
			return errors.New("no file name")
		}
		file = s
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(stderr, "agentloop:", err)
		return "", err
	}
	return file, nil
}
