package fsys

import "os"

// A handle is an open directory. On this system files have no owner or mode
// that could be checked.
type handle struct{ root *os.Root }

func openPath(path string, _ bool) (handle, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		return handle{}, err
	}
	root, err := os.OpenRoot(path)
	return handle{root}, err
}

func lookPath(path string) (handle, error) {
	root, err := os.OpenRoot(path)
	return handle{root}, err
}

// lock does nothing: a directory cannot be locked on this system.
func (h handle) lock(bool) error { return nil }

func (h handle) reopen() (handle, error) {
	root, err := h.root.OpenRoot(".")
	return handle{root}, err
}

func (h handle) sub(_, name string) (handle, error) {
	if err := h.root.Mkdir(name, 0o700); err != nil && !os.IsExist(err) {
		return handle{}, err
	}
	root, err := h.root.OpenRoot(name)
	return handle{root}, err
}

func (h handle) open(path, name string, flag int) (*os.File, error) {
	if info, err := h.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, unsafe(path, "it is no plain file")
	}
	return h.root.OpenFile(name, flag, 0o600)
}

func (h handle) lookUp(name string) error {
	_, err := h.root.Lstat(name)
	return err
}

func (h handle) rename(from, to string) error { return h.root.Rename(from, to) }

func (h handle) remove(name string) error { return h.root.Remove(name) }

func (h handle) removeDir(name string) error { return h.root.Remove(name) }

// sync does nothing: a directory cannot be synced on this system.
func (h handle) sync() error { return nil }

func (h handle) close() error { return h.root.Close() }

func (h handle) names() ([]string, error) {
	dir, err := h.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

func (h handle) isAt(path string) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	here, err := h.root.Stat(".")
	return err == nil && os.SameFile(here, there)
}
