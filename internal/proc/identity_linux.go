package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// An Identity tells a process from every other one that had, has or will have
// its pid.
type Identity struct {
	PID   int    `json:"pid"`
	Boot  string `json:"boot,omitzero"`  // id of the boot of the system
	Start uint64 `json:"start,omitzero"` // clock ticks between that boot and the start of the process
	Inode uint64 `json:"inode,omitzero"` // of its pidfd, unique in a boot since Linux 6.9
}

// identify returns the identity of a child that has not been reaped.
func identify(pid int, handle *os.File) Identity {
	return Identity{PID: pid, Boot: bootID(), Start: startTick(pid), Inode: inode(handle)}
}

var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(b))
})

// startTick returns field 22 of proc_pid_stat(5), or 0.
func startTick(pid int) uint64 {
	f := statFields(strconv.Itoa(pid))
	if len(f) < 20 {
		return 0
	}
	n, _ := strconv.ParseUint(string(f[19]), 10, 64)
	return n
}

// inode returns the inode of a pidfd where that is the process's own, or 0:
// before pidfs all pidfds shared one.
func inode(handle *os.File) uint64 {
	if handle == nil || !byHandle() {
		return 0
	}
	c, err := handle.SyscallConn()
	if err != nil {
		return 0
	}
	var st unix.Stat_t
	c.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) })
	if err != nil {
		return 0
	}
	return st.Ino
}

// find opens the process if it is alive and the one it says. The handle stays
// with it, whatever becomes of the number.
func (id Identity) find() (*Process, bool) {
	if id.PID <= 1 || id.Boot == "" || id.Boot != bootID() || id.Start == 0 {
		return nil, false
	}
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, false
	}
	handle := os.NewFile(uintptr(fd), "pidfd")
	// Looked at after the handle is open: it cannot become another process's now.
	if now := identify(id.PID, handle); now.Start != id.Start || now.Inode != id.Inode {
		handle.Close()
		return nil, false
	}
	return &Process{pid: id.PID, lost: true, handle: handle, exited: make(chan struct{})}, true
}

// EndLost ends what is left of a process whose host has died: its group, if the
// process is alive and the very one, and, unless mark is empty, the processes
// that have a variable of that name in their environment. They get SIGTERM, and
// SIGKILL after grace. It returns the pids that are alive all the same.
func EndLost(id Identity, mark string, grace time.Duration) (survivors []int) {
	if p, ok := id.find(); ok {
		survivors = p.KillGroup(grace, nil)
		p.Close()
	}
	if mark != "" {
		survivors = append(survivors, endMarked(mark, grace)...)
	}
	return survivors
}

// endMarked ends the processes that carry a mark. Those that they start
// meanwhile carry it too, so it looks until it finds none.
func endMarked(mark string, grace time.Duration) (survivors []int) {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		pids := Marked(mark)[mark]
		switch waited := time.Since(began); {
		case len(pids) == 0:
			return nil
		case waited >= grace+killWait:
			return pids
		case waited >= grace:
			signalMarked(pids, mark, sigKill)
		case pause == time.Millisecond:
			signalMarked(pids, mark, sigTerm)
			signalMarked(pids, mark, sigCont)
		}
		time.Sleep(pause)
	}
}

// signalMarked signals those of the processes that still carry the mark.
func signalMarked(pids []int, mark string, sig unix.Signal) {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if _, ok := marks(pid, mark)[mark]; ok { // it is the one that was found
			unix.PidfdSendSignal(fd, sig, nil, 0)
		}
		unix.Close(fd)
	}
}

// Marked returns the living processes that have a variable in their environment
// whose name begins with prefix, by that name.
func Marked(prefix string) map[string][]int {
	found := make(map[string][]int)
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		for name := range marks(pid, prefix) {
			found[name] = append(found[name], pid)
		}
	}
	return found
}

// marks returns the names of a living process's variables that begin with
// prefix. A zombie has none.
func marks(pid int, prefix string) map[string]struct{} {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || !bytes.Contains(env, []byte(prefix)) {
		return nil
	}
	found := make(map[string]struct{})
	for entry := range strings.SplitSeq(string(env), "\x00") {
		if name, _, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, prefix) {
			found[name] = struct{}{}
		}
	}
	return found
}
