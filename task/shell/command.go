package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/afoot-go/afoot/internal/proc"
	"github.com/afoot-go/afoot/internal/text"
	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
)

// A Command says what to run. Either Script or Argv is set; all else may be
// left out.
type Command struct {
	// Script is what the shell runs, byte for byte.
	Script string

	// Argv runs a program without a shell: its name and its arguments. The name is
	// looked up in the PATH of the host or, if it has a slash, from Dir.
	Argv []string

	Description string        // for people and models; if empty, the beginning of the command
	ToolUseID   string        // the tool call that the model started it with
	Dir         string        // if empty, Config.Dir
	Env         []string      // replaces the environment whole; if nil, Config.Env
	SetEnv      []string      // set on top, each NAME=VALUE
	TimeLimit   time.Duration // after which it is killed; if zero, Config.TimeLimit

	// OutputLimit is the number of bytes of output kept. If zero, the
	// registry's is used. A command that prints more is killed, unless
	// DropOutput is set: then the rest is dropped and counted.
	OutputLimit int64
	DropOutput  bool

	// Priority overrules when the model is told of the end.
	Priority notify.Priority
}

// Data is what a shell task keeps in its State.Data.
type Data struct {
	PID int    `json:"pid"` // of the command, which leads a group and a session of that number
	Dir string `json:"dir,omitzero"`

	// The rest tells the process from others that have, had or will have its pid:
	// the boot of the system, the clock tick of the start, and the inode of its
	// pidfd where the kernel gives each its own.
	Boot  string `json:"boot,omitzero"`
	Start uint64 `json:"start,omitzero"`
	Inode uint64 `json:"inode,omitzero"`
}

func newData(id proc.Identity, dir string) Data {
	return Data{PID: id.PID, Dir: dir, Boot: id.Boot, Start: id.Start, Inode: id.Inode}
}

func (d Data) identity() proc.Identity {
	return proc.Identity{PID: d.PID, Boot: d.Boot, Start: d.Start, Inode: d.Inode}
}

// markPrefix begins the name of the variable that marks a task's processes. The
// name and not the value is the task's own: the processes of a host within a
// task carry both marks.
const markPrefix = "AFOOT_TASK_"

func mark(h *task.Handle) string { return markPrefix + string(h.ID()) }

// Start starts a command as a task and returns at once. Its end comes through
// the registry's queue.
//
// The error matches ErrInvalid for a command that cannot be run as written, and
// is otherwise that of [task.Registry.Register], or says why the command did
// not start: then the task is recorded as failed, and nobody else is told. It matches
// task.ErrEnded if the task was killed before the command had begun; that end is
// told like any other. The context bounds the starting only; the task belongs to
// its owner.
func (s *Shell) Start(ctx context.Context, tasks *task.Registry, cmd Command) (*task.Handle, error) {
	h, err := s.register(ctx, tasks, cmd)
	if err != nil {
		return nil, err
	}
	if err := s.launch(h, cmd); err != nil {
		return nil, err
	}
	return h, nil
}

// descriptionLimit is the number of characters of a command that stand for a
// description where there is none.
const descriptionLimit = 120

// register makes the task that a command will run as.
func (s *Shell) register(ctx context.Context, tasks *task.Registry, cmd Command) (*task.Handle, error) {
	if err := cmd.check(); err != nil {
		return nil, err
	}
	if err := s.serve(tasks); err != nil {
		return nil, err
	}
	line := cmd.text()
	return tasks.Register(ctx, task.Spec{
		Type:        task.LocalBash,
		Description: cmp.Or(cmd.Description, text.Clip(line, descriptionLimit)),
		Command:     line,
		ToolUseID:   cmd.ToolUseID,
		OutputLimit: cmd.OutputLimit,
		DropOutput:  cmd.DropOutput,
		Priority:    cmd.Priority,
	})
}

// launch starts the command of a registered task. If that is impossible the
// task ends as not started, and the error is all that anybody is told.
func (s *Shell) launch(h *task.Handle, cmd Command) error {
	c, err := s.run(h, cmd)
	if err != nil {
		err = fmt.Errorf("shell: start %s: %w", h.ID(), err)
		h.ClaimNotification()
		h.Finish(task.Result{Status: task.Failed, Reason: task.NotStarted, Error: err.Error()})
		return err
	}
	err = h.Start(c)
	go c.supervise() // after Start: a command that has ended already ends a running task
	if err != nil {  // killed meanwhile
		return errors.Join(fmt.Errorf("shell: start %s: %w", h.ID(), err), c.Kill(context.Background()))
	}
	return nil
}

// run starts the process of a command.
func (s *Shell) run(h *task.Handle, cmd Command) (*command, error) {
	if line := h.State().Command; line != cmd.text() { // a hook has changed it
		if len(cmd.Argv) > 0 {
			return nil, fmt.Errorf("%w: a hook changed the text of a command that is given as Argv", ErrInvalid)
		}
		cmd.Script = line
		if err := cmd.check(); err != nil {
			return nil, err
		}
	}
	null, err := s.devNull()
	if err != nil {
		return nil, err
	}
	spec := proc.Spec{Env: s.env, Dir: cmp.Or(cmd.Dir, s.cfg.Dir), Stdin: null}
	if cmd.Env != nil {
		spec.Env = cmd.Env
	}
	spec.Env = append(slices.Clip(override(spec.Env, cmd.SetEnv)), mark(h)+"=1")
	if spec.Path, spec.Args, err = s.program(cmd); err != nil {
		return nil, err
	}
	p, err := proc.Start(spec)
	if err != nil {
		return nil, startError(spec, err)
	}
	return s.newCommand(h, cmd, p, spec.Dir)
}

// program returns the path of what runs and its arguments.
func (s *Shell) program(cmd Command) (path string, args []string, err error) {
	switch {
	case len(cmd.Argv) == 0:
		if path, err = s.path(); err != nil {
			return "", nil, err
		}
		args = []string{filepath.Base(path), "-c", cmd.Script}
		if strings.HasPrefix(cmd.Script, "-") || strings.HasPrefix(cmd.Script, "+") {
			args = slices.Insert(args, 2, "--") // it is no option
		}
		return path, args, nil
	case strings.Contains(cmd.Argv[0], "/"):
		return cmd.Argv[0], cmd.Argv, nil // seen from the directory of the command
	}
	path, err = exec.LookPath(cmd.Argv[0])
	return path, cmd.Argv, err
}

// startError says which of the things a start needs was missing: the kernel
// gives the same error for the directory and for the program.
func startError(spec proc.Spec, err error) error {
	if spec.Dir != "" {
		if _, derr := os.Stat(spec.Dir); derr != nil {
			return fmt.Errorf("working directory: %w", derr)
		}
	}
	return &fs.PathError{Op: "run", Path: spec.Path, Err: err}
}

// text returns the command in one string, as the state and the notification
// have it.
func (cmd Command) text() string {
	if len(cmd.Argv) == 0 {
		return cmd.Script
	}
	words := make([]string, len(cmd.Argv))
	for i, word := range cmd.Argv {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n\"'\\$`*?[]{}()<>|&;#~") {
			words[i] = strconv.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

// check returns an error that matches ErrInvalid if the command cannot be run.
func (cmd Command) check() error {
	switch {
	case cmd.Script != "" && len(cmd.Argv) > 0:
		return fmt.Errorf("%w: both Script and Argv are set", ErrInvalid)
	case strings.TrimSpace(cmd.Script) == "" && (len(cmd.Argv) == 0 || cmd.Argv[0] == ""):
		return fmt.Errorf("%w: it is empty", ErrInvalid)
	case strings.IndexByte(cmd.Script+strings.Join(cmd.Argv, "")+cmd.Dir, 0) >= 0:
		return fmt.Errorf("%w: it has a NUL byte", ErrInvalid)
	case cmd.TimeLimit < 0:
		return fmt.Errorf("%w: negative TimeLimit %v", ErrInvalid, cmd.TimeLimit)
	case cmd.OutputLimit < 0:
		return fmt.Errorf("%w: negative OutputLimit %d", ErrInvalid, cmd.OutputLimit)
	}
	return checkEnv(append(cmd.Env[:len(cmd.Env):len(cmd.Env)], cmd.SetEnv...))
}
