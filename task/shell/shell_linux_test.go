package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/shell"
	"github.com/afoot-go/afoot/task/tasktest"
)

func timeout(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), patience)
}

func exactly(s string) *regexp.Regexp { return regexp.MustCompile("^" + regexp.QuoteMeta(s) + "$") }

func unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }

// The promises of task.Task hold for a command, however it takes SIGTERM.
func TestTaskPromises(t *testing.T) {
	for name, script := range map[string]string{
		"plain":        "echo up; sleep 300",
		"ignores TERM": "trap '' TERM; echo up; while :; do sleep 0.1; done",
		"stopped":      "echo up; kill -STOP $$; sleep 300",
		"prints":       "echo up; yes",
	} {
		t.Run(name, func(t *testing.T) {
			tasktest.Run(t, func(t *testing.T) task.Task {
				b := open(t, shell.Config{Grace: 100 * ms})
				b.tellAll()
				h := b.start(shell.Command{Script: script, DropOutput: true, OutputLimit: 1 << 20})
				b.line(h, "up")
				return h
			})
		})
	}
}

func TestScriptRunsAsWritten(t *testing.T) {
	b := open(t, shell.Config{})
	b.tellAll()
	for script, want := range map[string]string{
		`printf '%s' '（11 ツール）'`:       "（11 ツール）",
		"cat <<'EOF'\nit's $x\nEOF":    "it's $x\n",
		`-no-such-command || echo ok`:  "bash: line 1: -no-such-command: command not found\nok\n",
		`false | true; echo $?`:        "0\n", // no pipefail
		"echo a # comment":             "a\n",
		"printf 'a\\0b\\n'":            "a\x00b\n",
		`echo "$0 $#"`:                 "bash 0\n",
		"x=$(cat); echo \"[$x]\"":      "[]\n",
		"echo out; echo err >&2; echo": "out\nerr\n\n",
	} {
		h := b.script(script)
		require.Equal(t, task.Completed, b.wait(h).Status, "%q", script)
		require.Equal(t, want, text(t, h), "%q", script)
	}
}

func TestNoStartUpFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rc")
	require.NoError(t, os.WriteFile(file, []byte("echo read\n"), 0o600))
	t.Setenv("BASH_ENV", file)
	t.Setenv("ENV", file)
	for _, sh := range []string{"", "/bin/sh"} {
		b := open(t, shell.Config{Shell: sh})
		b.tellAll()
		h := b.script("echo ran")
		b.wait(h)
		require.Equal(t, "ran\n", text(t, h), "Shell %q", sh)
	}
}

func TestArgvRunsWithoutAShell(t *testing.T) {
	b := open(t, shell.Config{})
	b.tellAll()
	h := b.start(shell.Command{Argv: []string{"printf", "%s|", "a b", "$HOME", "*"}})
	st := b.wait(h)
	require.Equal(t, "a b|$HOME|*|", text(t, h))
	require.Equal(t, `printf %s| "a b" "$HOME" "*"`, strings.ReplaceAll(st.Command, `"%s|"`, "%s|"))
}

func TestEnvironment(t *testing.T) {
	t.Setenv("EDITOR", "vim")
	t.Setenv("SECRET_TOKEN", "s3cret")
	t.Setenv("KEPT", "yes")
	const show = `echo "$EDITOR,$SECRET_TOKEN,$KEPT,$NEW"`
	tests := []struct {
		name string
		cfg  shell.Config
		cmd  shell.Command
		want string
	}{
		{"the host's, without a terminal", shell.Config{}, shell.Command{}, "false,s3cret,yes,"},
		{"dropped by pattern", shell.Config{DropEnv: []string{"*_TOKEN"}}, shell.Command{}, "false,,yes,"},
		{"each entry can be set", shell.Config{}, shell.Command{SetEnv: []string{"EDITOR=ed", "NEW=1"}}, "ed,s3cret,yes,1"},
		{"the last of two wins", shell.Config{}, shell.Command{SetEnv: []string{"NEW=1", "NEW=2"}}, "false,s3cret,yes,2"},
		{"replaced whole", shell.Config{}, shell.Command{Env: []string{"NEW=1"}}, ",,,1"},
		{"replaced for all", shell.Config{Env: []string{"KEPT=no"}}, shell.Command{}, ",,no,"},
		{"empty", shell.Config{}, shell.Command{Env: []string{}}, ",,,"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := open(t, tt.cfg)
			b.tellAll()
			tt.cmd.Script = show
			h, err := b.sh.Start(t.Context(), b.tasks, tt.cmd)
			require.NoError(t, err)
			b.wait(h)
			require.Equal(t, tt.want+"\n", text(t, h))
		})
	}
}

func TestNonInteractiveEntries(t *testing.T) {
	b := open(t, shell.Config{})
	b.tellAll()
	h := b.script("env")
	b.wait(h)
	lines := strings.Split(text(t, h), "\n")
	for _, entry := range shell.NonInteractive() {
		require.Contains(t, lines, entry)
	}
}

func TestDir(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	b := open(t, shell.Config{Dir: one})
	b.tellAll()
	first := b.script("pwd")
	second := b.start(shell.Command{Script: "pwd", Dir: two})
	require.Empty(t, data(t, first.State()).Dir != one)
	b.wait(first)
	b.wait(second)
	require.Equal(t, one+"\n", text(t, first))
	require.Equal(t, two+"\n", text(t, second))
}

// Nothing is started for a command that cannot be run as it is written, and no
// task exists.
func TestBad91InvalidCommands(t *testing.T) {
	b := open(t, shell.Config{})
	for name, cmd := range map[string]shell.Command{
		"empty":            {},
		"blank":            {Script: " \n\t"},
		"empty argv":       {Argv: []string{""}},
		"both":             {Script: "true", Argv: []string{"true"}},
		"NUL in script":    {Script: "echo a\x00b"},
		"NUL in argv":      {Argv: []string{"echo", "\x00"}},
		"NUL in dir":       {Script: "true", Dir: "/\x00"},
		"env without =":    {Script: "true", SetEnv: []string{"X"}},
		"env without name": {Script: "true", Env: []string{"=x"}},
		"env with NUL":     {Script: "true", SetEnv: []string{"X=\x00"}},
		"negative limit":   {Script: "true", TimeLimit: -1},
		"negative output":  {Script: "true", OutputLimit: -1},
	} {
		_, err := b.sh.Start(t.Context(), b.tasks, cmd)
		require.ErrorIs(t, err, shell.ErrInvalid, name)
		_, err = b.sh.Run(t.Context(), b.tasks, cmd, 0)
		require.ErrorIs(t, err, shell.ErrInvalid, name)
	}
	require.Empty(t, b.tasks.List(t.Context()))
}

// A command that does not start is told by the error alone, which says what was
// missing.
func TestBad95NotStarted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("x"), 0o600))
	tests := []struct {
		name string
		cmd  shell.Command
		is   error
		says string
	}{
		{"missing program", shell.Command{Argv: []string{"no-such-program"}}, os.ErrNotExist, "no-such-program"},
		{"missing file", shell.Command{Argv: []string{dir + "/none"}}, os.ErrNotExist, dir + "/none"},
		{"not executable", shell.Command{Argv: []string{plain}}, os.ErrPermission, plain},
		{"missing directory", shell.Command{Script: "true", Dir: dir + "/gone"}, os.ErrNotExist, "working directory"},
		{"too long", shell.Command{Script: strings.Repeat(":;", 128<<10)}, syscall.E2BIG, "argument list too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := open(t, shell.Config{})
			_, err := b.sh.Start(t.Context(), b.tasks, tt.cmd)
			if tt.is == os.ErrNotExist && len(tt.cmd.Argv) > 0 && !strings.Contains(tt.cmd.Argv[0], "/") {
				require.ErrorContains(t, err, "not found in $PATH")
			} else {
				require.ErrorIs(t, err, tt.is)
			}
			require.ErrorContains(t, err, tt.says)
			require.Empty(t, b.told(), "the error has told it")
			states := b.tasks.List(t.Context())
			require.Len(t, states, 1)
			require.Equal(t, task.Failed, states[0].Status)
			require.Equal(t, task.NotStarted, states[0].Reason)
			require.Equal(t, err.Error(), states[0].Error)

			_, rerr := b.sh.Run(t.Context(), b.tasks, tt.cmd, 0)
			require.Error(t, rerr)
			require.Empty(t, b.told())
		})
	}
}

func TestShellOfAnotherRegistry(t *testing.T) {
	tasks, _ := tasktest.Open(t)
	_, err := shell.New(shell.Config{}).Start(t.Context(), tasks, shell.Command{Script: "true"})
	require.ErrorContains(t, err, "Config.Kinds")
}

func TestStartAfterClose(t *testing.T) {
	b := open(t, shell.Config{})
	require.NoError(t, b.tasks.Close())
	_, err := b.sh.Start(t.Context(), b.tasks, shell.Command{Script: "true"})
	require.ErrorIs(t, err, task.ErrClosed)
	require.NoError(t, b.sh.Close(), "second Close")
}

func TestHookChangesTheCommand(t *testing.T) {
	sh := shell.New(shell.Config{})
	inbox := new(notify.Queue)
	refused := errors.New("not here")
	tasks, err := task.Open(t.Context(), task.Config{Notify: inbox, Kinds: []task.Kind{sh}, TaskCreated: []task.Hook{
		func(_ context.Context, spec task.Spec) (task.Spec, error) {
			if strings.Contains(spec.Command, "rm -rf") {
				return spec, refused
			}
			spec.Command = strings.ReplaceAll(spec.Command, "echo", "echo hooked")
			return spec, nil
		},
	}})
	require.NoError(t, err)
	h, err := sh.Start(t.Context(), tasks, shell.Command{Script: "echo hi"})
	require.NoError(t, err)
	st, err := h.Take(t.Context())
	require.NoError(t, err)
	require.Equal(t, "echo hooked hi", st.Command)
	require.Equal(t, "hooked hi\n", text(t, h))

	_, err = sh.Start(t.Context(), tasks, shell.Command{Script: "rm -rf x"})
	require.ErrorIs(t, err, refused)
	_, err = sh.Start(t.Context(), tasks, shell.Command{Argv: []string{"echo", "hi"}})
	require.ErrorIs(t, err, shell.ErrInvalid, "arguments cannot be put together from a text")
	require.NoError(t, tasks.Close())
}

func TestSummaryNamesTheCommand(t *testing.T) {
	long := "echo " + strings.Repeat("x", 200)
	tests := []struct{ script, description, want string }{
		{"exit 0", "does nothing", `"exit 0" completed (exit code 0)`},
		{"exit 3", "", `"exit 3" failed (exit code 3)`},
		{"kill -SEGV $$", "", `"kill -SEGV $$" failed (signal SIGSEGV)`},
		{long, "prints much", `"prints much" completed (exit code 0)`},
		{long, "", `"` + long[:119] + `…" completed (exit code 0)`},
		{"true\ntrue", "two lines", `"two lines" completed (exit code 0)`},
	}
	for _, tt := range tests {
		b := open(t, shell.Config{})
		h := b.start(shell.Command{Script: tt.script, Description: tt.description})
		st := b.wait(h)
		require.Equal(t, "Background command "+tt.want, st.Summary)
		require.Equal(t, tt.script, st.Command, "the command itself is kept whole")
		news := b.told()
		require.Len(t, news, 1)
		require.Equal(t, st.Summary, news[0].Summary)
	}
}

func ExampleShell_Run() {
	var inbox notify.Queue
	sh := shell.New(shell.Config{})
	tasks, err := task.Open(context.Background(), task.Config{Notify: &inbox, Kinds: []task.Kind{sh}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tasks.Close()

	res, err := sh.Run(context.Background(), tasks, shell.Command{Script: "echo built; exit 2"}, 0)
	if err != nil {
		fmt.Println("could not start:", err)
		return
	}
	fmt.Println(res)
	// Output:
	// built
	// Background command "echo built; exit 2" failed (exit code 2)
}
