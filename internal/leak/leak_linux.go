package leak

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// held returns the open descriptors and the children of this process.
func held() census {
	c := make(census)
	descriptors(c)
	children(c)
	return c
}

// descriptors adds the open descriptors to c, except the standard three, which
// belong to whoever started the process. A descriptor's name holds its target,
// so that one closed and opened anew for something else is found.
func descriptors(c census) {
	const dir = "/proc/self/fd/"
	entries, err := os.ReadDir(dir)
	if err != nil {
		// Too many open files, for example.
		c["descriptors, not counted"] = err.Error()
		return
	}
	for _, e := range entries {
		target, err := os.Readlink(dir + e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // the one that ReadDir read from
		}
		if err != nil {
			target = err.Error()
		}
		if n, err := strconv.Atoi(e.Name()); err != nil || n > 2 {
			c[fmt.Sprintf("descriptor %s -> %s", e.Name(), target)] = ""
		}
	}
}

// children adds the children of this process to c, zombies too. It looks at
// every process, because /proc/<pid>/task/<tid>/children is an option of the
// kernel and, by its documentation, reliable only for processes at a standstill.
func children(c census) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		c["children, not counted"] = err.Error()
		return
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // gone meanwhile
		}
		// "pid (comm) state ppid …", where comm may hold spaces and parentheses.
		text := string(stat)
		open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
		if open < 0 || end < open {
			continue
		}
		rest := strings.Fields(text[end+1:])
		if len(rest) < 2 || rest[1] != strconv.Itoa(os.Getpid()) && !descends(e.Name()) {
			continue
		}
		c["child "+e.Name()] = fmt.Sprintf("%s, state %s", text[open+1:end], rest[0])
	}
}

// descends reports whether a process was started by one that the tests started,
// which has ended since: it is no child of ours any more, but still carries what
// tells our children who checks.
func descends(pid string) bool {
	env, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return false
	}
	mark := fmt.Sprintf("%s=%d", checkedBy, os.Getpid())
	return pid != strconv.Itoa(os.Getpid()) && slices.Contains(strings.Split(string(env), "\x00"), mark)
}
