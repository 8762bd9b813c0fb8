package leak_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/leak"
)

// TestMain runs the tests without what they test, which could hide that they
// fail.
func TestMain(m *testing.M) {
	if os.Getenv(conductVar) != "" {
		leak.Main(m)
	}
	os.Exit(m.Run())
}

// conductVar names, in the environment of this test binary run again, what
// TestConduct does there.
const conductVar = "LEAK_TEST_CONDUCT"

// TestConduct does nothing, except in a process started by runAs.
func TestConduct(t *testing.T) {
	if conduct, ok := conducts[os.Getenv(conductVar)]; ok {
		conduct(t)
	}
}

// kept holds what is leaked on purpose where the garbage collector, which
// would close it, sees it as used.
var kept []any

var conducts = map[string]func(t *testing.T){
	"clean": func(t *testing.T) {
		// One of everything, used and released, with what the runtime starts
		// on the way and keeps: the poller and the delivery of signals.
		writeTemp(t, "x")
		require.NoError(t, os.RemoveAll(filepath.Join(os.TempDir(), "x")))
		require.NoError(t, os.WriteFile(filepath.Join(t.TempDir(), "x"), nil, 0o600))
		require.NoError(t, exec.Command(os.Args[0], "-test.run=^$").Run())
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, ln.Close())
		_, stop := signal.NotifyContext(t.Context(), os.Interrupt)
		stop()
		runtime.GC()
	},
	"standard input replaced": func(t *testing.T) {
		require.NoError(t, os.Stdin.Close())
		f, err := os.Open(os.Args[0])
		require.NoError(t, err)
		kept = append(kept, f)
	},
	"temporary directories": func(t *testing.T) {
		entries, err := os.ReadDir(os.TempDir())
		require.NoError(t, err)
		require.Empty(t, entries)
		require.Equal(t, os.TempDir(), filepath.Dir(filepath.Dir(t.TempDir())))
	},
	"slow to unwind": func(t *testing.T) {
		writeTemp(t, "late")
		go func() {
			time.Sleep(100 * time.Millisecond)
			os.RemoveAll(filepath.Join(os.TempDir(), "late"))
		}()
	},
	"parent of a checked process": func(t *testing.T) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestConduct$")
		cmd.Env = append(os.Environ(), conductVar+"=goroutine")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)

		cmd = exec.Command(os.Args[0], "-test.run=^TestConduct$")
		cmd.Env = append(os.Environ(), conductVar+"=failure")
		require.Error(t, cmd.Run(), "a failing test in a process that doesn't check")
	},
	"goroutine":      func(t *testing.T) { go waitForever() },
	"temporary file": func(t *testing.T) { writeTemp(t, "sub/forgotten") },
	"failure":        func(t *testing.T) { t.Error("failing as told") },
	"failure and temporary file": func(t *testing.T) {
		writeTemp(t, "forgotten")
		t.Error("failing as told")
	},
	"own exit code": func(t *testing.T) { os.Exit(7) },
	"file": func(t *testing.T) {
		f, err := os.Open(os.Args[0])
		require.NoError(t, err)
		kept = append(kept, f)
	},
	"pipe": func(t *testing.T) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		kept = append(kept, r, w)
	},
	"pidfd": func(t *testing.T) { kept = append(kept, start(t, "true")) },
	"number used again": func(t *testing.T) {
		require.NoError(t, os.NewFile(3, "from runAs").Close())
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		require.Equal(t, 3, int(f.Fd()))
		kept = append(kept, f)
	},
	"zombie": func(t *testing.T) { require.NoError(t, start(t, "true").Release()) },
	"live grandchild": func(t *testing.T) {
		out, err := exec.Command("sh", "-c", "sleep 30 >/dev/null 2>&1 & echo started $!").Output()
		require.NoError(t, err)
		fmt.Print(string(out))
	},
	"live child": func(t *testing.T) {
		p := start(t, "sleep", "30")
		fmt.Printf("started %d\n", p.Pid)
		require.NoError(t, p.Release())
	},
}

func waitForever() { select {} }

func writeTemp(t *testing.T, name string) {
	path := filepath.Join(os.TempDir(), filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
}

func start(t *testing.T, argv ...string) *os.Process {
	path, err := exec.LookPath(argv[0])
	require.NoError(t, err)
	p, err := os.StartProcess(path, argv, &os.ProcAttr{})
	require.NoError(t, err)
	return p
}

// A process runs TestConduct and does its own checking.
type process struct {
	conduct string
	cmd     *exec.Cmd
	temp    string // where it makes its private directory
	out     bytes.Buffer
}

// runAs starts a process whose tests behave as named by conduct. Starting all
// before waiting for the first saves the two seconds that each lets pass.
func runAs(t *testing.T, conduct string) *process {
	t.Helper()
	require.Contains(t, conducts, conduct)
	p := &process{conduct: conduct, temp: t.TempDir()}
	p.cmd = exec.Command(os.Args[0], "-test.run=^TestConduct$")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"TMPDIR=" + p.temp, "TMP=" + p.temp, "TEMP=" + p.temp, "GOTMPDIR=" + p.temp,
		conductVar + "=" + conduct,
		"GORACE=atexit_sleep_ms=0", // else each exit of a race build takes a second
	}
	if runtime.GOOS != "windows" {
		extra, err := os.Open(os.Args[0])
		require.NoError(t, err)
		defer extra.Close()
		p.cmd.ExtraFiles = []*os.File{extra}
	}
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil { // the subtest that waits was not run
			p.wait(t)
		}
	})
	return p
}

var started = regexp.MustCompile(`started (\d+)`)

// wait waits for the end of p, ends the child that it was told to leave, and
// returns what p printed and its exit code.
func (p *process) wait(t *testing.T) (out string, code int) {
	t.Helper()
	if err := p.cmd.Wait(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	out = p.out.String()
	if m := started.FindStringSubmatch(out); m != nil {
		pid, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		child, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, child.Kill(), "the child that %q left behind", p.conduct)
		require.NoError(t, child.Release())
	}
	return out, p.cmd.ProcessState.ExitCode()
}

func TestPasses(t *testing.T) {
	for _, conduct := range []string{
		"clean", "temporary directories", "standard input replaced", "slow to unwind",
		"parent of a checked process",
	} {
		t.Run(conduct, func(t *testing.T) {
			p := runAs(t, conduct)
			out, code := p.wait(t)
			require.Zero(t, code, "%s", out)
			require.NotContains(t, out, "leak:")
			requireEmpty(t, p.temp)
		})
	}
}

func TestNamesWhatIsLeft(t *testing.T) {
	tests := []struct {
		conduct string
		want    string // a pattern that the report ends with
		linux   bool   // only there
	}{
		{conduct: "goroutine", want: `1 left .*\n\tgoroutine \d+\n\t\t\[select.*\n\t\t.*waitForever\((?s:.*)`},
		{conduct: "temporary file", want: `2 left .*\n\ttemporary file .*sub.\n\ttemporary file .*sub.forgotten\n`},
		{conduct: "failure and temporary file", want: `failing as told(?s:.*)1 left .*\n\ttemporary file .*forgotten\n`},
		{conduct: "file", want: `1 left .*\n\tdescriptor \d+ -> .*leak.test\n`, linux: true},
		{conduct: "pipe", want: `2 left .*\n\tdescriptor \d+ -> pipe:.*\n\tdescriptor \d+ -> pipe:.*\n`, linux: true},
		{conduct: "pidfd", want: `2 left .*\n\tchild \d+\n\t\ttrue, state Z\n\tdescriptor \d+ -> .*pidfd.*\n`, linux: true},
		{conduct: "number used again", want: `1 left .*\n\tdescriptor 3 -> /dev/null\n`, linux: true},
		{conduct: "zombie", want: `1 left .*\n\tchild \d+\n\t\ttrue, state Z\n`, linux: true},
		{conduct: "live grandchild", want: `1 left .*\n\tchild \d+\n\t\tsleep, state S\n`, linux: true},
		{conduct: "live child", want: `1 left .*\n\tchild \d+\n\t\tsleep, state S\n`, linux: true},
	}
	processes := make(map[string]*process)
	for _, tt := range tests {
		if !tt.linux || runtime.GOOS == "linux" {
			processes[tt.conduct] = runAs(t, tt.conduct)
		}
	}
	for _, tt := range tests {
		t.Run(tt.conduct, func(t *testing.T) {
			p := processes[tt.conduct]
			if p == nil {
				t.Skip("needs /proc")
			}
			out, code := p.wait(t)
			require.Equal(t, 1, code, "%s", out)
			require.Regexp(t, tt.want+`$`, out)
			requireEmpty(t, p.temp)
		})
	}
}

func TestKeepsExitCode(t *testing.T) {
	out, code := runAs(t, "failure").wait(t)
	require.Equal(t, 1, code, "%s", out)
	require.NotContains(t, out, "leak:")

	out, code = runAs(t, "own exit code").wait(t)
	require.Equal(t, 7, code, "%s", out)
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "the private directory, or something in it, is still there")
}
