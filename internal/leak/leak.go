// Package leak fails a package's tests when they leave something behind:
// goroutines, temporary files and, on Linux, descriptors and child processes.
//
// A package opts in with its TestMain and needs nothing else:
//
//	func TestMain(m *testing.M) { leak.Main(m) }
//
// A test binary that is also run as a helper process decides that before it
// calls [Main]. Only _test.go files may import this package.
package leak

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkedBy names the process that will do the checking. Test binaries started
// by it see the variable and leave the checks to it.
const checkedBy = "AFOOT_LEAK_CHECKED_BY"

// grace is how long Main waits for leftovers to go away by themselves.
const grace = 2 * time.Second

// Main runs the tests of m with a private, empty directory as the place for
// temporary files, and exits the process.
//
// If the tests passed and left something behind, it says on standard error what
// that is and exits with 1. If they failed, it says the same, and the exit code
// is theirs. What existed before Main was called doesn't count, nor does
// anything that goes away within two seconds. A panic or a test that runs out
// of time ends the process without the checks, and the directory stays.
//
// In a test binary started, directly or not, by tests that Main runs, it only
// runs the tests: the outermost process checks, and the temporary directory is
// shared. When fuzzing, whose workers are children, there are no checks either.
func Main(m *testing.M) {
	if os.Getenv(checkedBy) != "" {
		os.Exit(m.Run())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := privateTemp()
	if err != nil {
		fmt.Fprintf(os.Stderr, "leak: private temporary directory: %v\n", err)
		return 1
	}
	os.Setenv(checkedBy, fmt.Sprint(os.Getpid()))
	if err := startPoller(); err != nil {
		fmt.Fprintf(os.Stderr, "leak: %v\n", err)
		return 1
	}
	before := take(dir)
	code := m.Run()

	var left census
	if f := flag.Lookup("test.fuzz"); f == nil || f.Value.String() == "" {
		left = leftovers(before, dir)
	}
	if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "leak: %d left behind by the tests:\n%s", len(left), left)
		code = max(code, 1)
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintf(os.Stderr, "leak: temporary directory: %v\n", err)
		code = max(code, 1)
	}
	return code
}

// privateTemp makes an empty directory and has os.TempDir and t.TempDir, which
// prefers GOTMPDIR, use it. The name is short because the paths of sockets,
// which tests put there, are limited to about 100 bytes.
func privateTemp() (string, error) {
	dir, err := os.MkdirTemp("", "leak")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		os.Setenv(name, dir)
	}
	if os.Getenv("GOTMPDIR") != "" {
		os.Setenv("GOTMPDIR", dir)
	}
	return dir, nil
}

// startPoller makes the runtime open its poller's descriptors (an epoll and an
// eventfd on Linux), which it does with the first pipe, socket or timer and
// never undoes. They then belong to the baseline, and one that a test opens
// can still be told from them.
func startPoller() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	r.Close()
	w.Close()
	return nil
}

// leftovers returns what exists now and did not before. Anything still there
// gets time to go: the last thing a goroutine, or the parent of a child, does
// is to signal its end, and a test that waits for that signal can return before
// the goroutine has run its last instructions. No event comes after those, so
// the only way to tell "unwinding" from "left" is to look again.
func leftovers(before census, dir string) census {
	for pause, end := time.Millisecond, time.Now().Add(grace); ; pause = min(2*pause, 100*time.Millisecond) {
		left := take(dir)
		maps.DeleteFunc(left, func(name, _ string) bool {
			_, old := before[name]
			return old
		})
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		time.Sleep(pause)
	}
}

// A census maps the name of each thing that tests can leave behind, unique
// within the process, to what else is known about it.
type census map[string]string

func take(dir string) census {
	c := held()
	maps.Copy(c, goroutines())
	maps.Copy(c, files(dir))
	return c
}

// String lists c, one thing a line, with its details on the lines below.
func (c census) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "\t%s\n", name)
		if detail := strings.TrimSpace(c[name]); detail != "" {
			fmt.Fprintf(&b, "\t\t%s\n", strings.ReplaceAll(detail, "\n", "\n\t\t"))
		}
	}
	return b.String()
}

// goroutines returns the stacks of all goroutines, less the one that delivers
// signals: the first call of signal.Notify starts it for good.
func goroutines() census {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	c := make(census)
	for stack := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		if strings.Contains(stack, "\nos/signal.loop(") {
			continue
		}
		// The name must not change with the state: "goroutine 7 [select]:".
		name, detail, _ := strings.Cut(stack, " [")
		c[name] = "[" + detail
	}
	return c
}

// files returns everything below dir, directories with a slash at the end.
func files(dir string) census {
	c := make(census)
	// The function never returns an error, so WalkDir doesn't either.
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			c["temporary file "+path] = err.Error()
		case path == dir:
		case d.IsDir():
			c["temporary file "+path+string(filepath.Separator)] = ""
		default:
			c["temporary file "+path] = ""
		}
		return nil
	})
	return c
}
