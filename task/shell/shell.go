package shell

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/afoot-go/afoot/internal/proc"
	"github.com/afoot-go/afoot/task"
)

// DefaultGrace is the time between SIGTERM and SIGKILL.
const DefaultGrace = 2 * time.Second

// ErrInvalid is matched by the error for a command that cannot be run as it is
// written. Nothing has been started then.
var ErrInvalid = errors.New("shell: invalid command")

// Config says how a [Shell] runs its commands.
// The zero Config is ready to use.
type Config struct {
	// Shell is the program that runs scripts, as SHELL -c SCRIPT, or as SHELL -c
	// -- SCRIPT for one that begins with a dash or a plus. A name is looked up in
	// the PATH. If empty, it is bash if that is in the PATH, and /bin/sh otherwise.
	Shell string

	// Dir is the working directory of commands that name none. If empty, it is
	// the host's own.
	Dir string

	// Env is the environment of commands that bring none of their own. If nil,
	// it is the host's as it is when New is called, with the entries of
	// NonInteractive in place of its own.
	Env []string

	// DropEnv are patterns as in path.Match, such as "*_TOKEN". Variables whose
	// names match are left out of the environment taken from the host.
	DropEnv []string

	// Grace is the time a command has between SIGTERM and SIGKILL. If zero,
	// DefaultGrace is used; if negative, it has none.
	Grace time.Duration

	// TimeLimit is how long a command that sets no limit of its own may run
	// before it is killed. If zero, it is not limited.
	TimeLimit time.Duration

	// KeepInherited leaves the descriptors alone that the host has inherited
	// without close-on-exec. Otherwise New marks them, so that no child gets them.
	KeepInherited bool
}

// A Shell starts commands in one registry. It is the registry's kind for tasks
// of type local_bash. Its methods may be called from any goroutine.
type Shell struct {
	cfg  Config
	env  []string
	path func() (string, error)
	lost func() map[string][]int // processes with a mark that live when the first task is recovered

	mu      sync.Mutex     // guards the fields below
	tasks   *task.Registry // the one it serves, from the first command on
	null    *os.File       // /dev/null, from the first command on
	closed  bool
	open    map[*command]struct{} // commands with a descriptor of ours
	readers sync.WaitGroup        // one for each; added to with mu held, before closed
}

var _ task.Kind = (*Shell)(nil)

// New returns a shell that has started nothing. It panics if a pattern in
// cfg.DropEnv is malformed.
//
// On Linux it marks every descriptor from 3 on that this process has as
// close-on-exec, unless cfg.KeepInherited is set.
func New(cfg Config) *Shell {
	if !cfg.KeepInherited {
		proc.MarkInherited()
	}
	return &Shell{
		cfg:  cfg,
		env:  baseEnv(cfg),
		path: sync.OnceValues(func() (string, error) { return findShell(cfg.Shell) }),
		lost: sync.OnceValue(func() map[string][]int { return proc.Marked(markPrefix) }),
		open: make(map[*command]struct{}),
	}
}

// grace returns the time between SIGTERM and SIGKILL.
func (s *Shell) grace() time.Duration { return cmp.Or(s.cfg.Grace, DefaultGrace) }

// findShell returns the absolute path of the shell: a name is looked up in the
// PATH, and never found in the directory that a command runs in.
func findShell(name string) (string, error) {
	if name == "" {
		if path, err := exec.LookPath("bash"); err == nil {
			return filepath.Abs(path)
		}
		return "/bin/sh", nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// Type returns task.LocalBash.
func (s *Shell) Type() task.Type { return task.LocalBash }

// Close ends what the shell still holds. The registry calls it when it has
// killed its tasks; what is left then are pipes that processes outside a
// command's group hold, which get SIGPIPE when they next print, and commands
// that were being started, which are killed like any other. No command can be
// started after Close. Closing twice does nothing more.
func (s *Shell) Close() error {
	s.mu.Lock()
	null := s.null
	s.null, s.closed = nil, true
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()

	var kills []*killing
	for _, c := range open {
		c.hurry()
		kills = append(kills, c.kill())
	}
	for i, c := range open {
		<-kills[i].done
		c.proc.Output.Close() // ends its reader
		c.free()
	}
	s.readers.Wait()
	if null == nil {
		return nil
	}
	return null.Close()
}

// serve makes tasks the registry that the shell serves. A shell serves one: what
// it holds is given up when that is closed.
func (s *Shell) serve(tasks *task.Registry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case tasks.Kind(task.LocalBash) != task.Kind(s):
		return errors.New("shell: the registry was not opened with this Shell in its Config.Kinds")
	case s.tasks == nil:
		s.tasks = tasks
	case s.tasks != tasks:
		return errors.New("shell: this Shell serves another registry already")
	}
	return nil
}

// devNull returns the standard input of all commands.
func (s *Shell) devNull() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("shell: %w", os.ErrClosed)
	}
	var err error
	if s.null == nil {
		s.null, err = os.Open(os.DevNull)
	}
	return s.null, err
}
