package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// An item is a command with the items that must complete before it starts.
type item struct {
	ID           string
	Title        string // may be empty
	Command      string
	Dependencies []string
}

// String returns what people and the model see of the item.
func (it item) String() string {
	if it.Title == "" {
		return it.ID
	}
	return it.ID + " (" + clip(it.Title, 80) + ")"
}

// A plan is a list of items without cycles. It does not change.
type plan struct {
	items  []item
	behind [][]int // for each item those that wait for it, once for each mention
}

// maxItems is the number of items that a plan may have.
const maxItems = 10_000

// newPlan checks items and makes a plan of them.
func newPlan(items []item) (*plan, error) {
	switch n := len(items); {
	case n == 0:
		return nil, errors.New("it has no items")
	case n > maxItems:
		return nil, fmt.Errorf("it has more than %d items", maxItems)
	}
	p := &plan{items: items, behind: make([][]int, len(items))}
	index := make(map[string]int, len(items))
	for i, it := range items {
		if err := it.check(); err != nil {
			return nil, itemError(i, it, err)
		}
		if j, dup := index[it.ID]; dup {
			return nil, itemError(i, it, fmt.Errorf("item %d has the same id", j+1))
		}
		index[it.ID] = i
	}
	for i, it := range items {
		for _, id := range it.Dependencies {
			j, ok := index[id]
			if !ok {
				return nil, itemError(i, it, fmt.Errorf("depends on %q, which is not in the plan", clip(id, 80)))
			}
			p.behind[j] = append(p.behind[j], i)
		}
	}
	if cycle := p.cycle(index); cycle != nil {
		i := cycle[0]
		return nil, itemError(i, items[i], fmt.Errorf("waits for itself: %s", p.path(cycle)))
	}
	return p, nil
}

func itemError(i int, it item, err error) error {
	if it.ID == "" {
		return fmt.Errorf("item %d: %w", i+1, err)
	}
	return fmt.Errorf("item %d (%q): %w", i+1, clip(it.ID, 80), err)
}

var (
	safeID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	device = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`) // a file name that Windows keeps for itself
)

// check reports what is wrong with an item taken alone.
func (it item) check() error {
	switch {
	case it.ID == "":
		return errors.New("it has no id")
	case !safeID.MatchString(it.ID):
		return errors.New("an id is 1 to 64 of a-z, 0-9, _ and -, and begins with a letter or digit")
	case device.MatchString(it.ID):
		return errors.New("the id is the name of a device on Windows")
	case strings.TrimSpace(it.Command) == "":
		return errors.New("it has no command")
	case strings.Contains(it.Command+it.Title, "\x00"):
		return errors.New("it has a NUL character")
	}
	return nil
}

// cycle returns the items of a cycle, each waiting for the next and the last
// one the same as the first, or nil if there is none.
func (p *plan) cycle(index map[string]int) []int {
	waiting := make([]int, len(p.items))
	var free []int // items that wait for nobody
	for i, it := range p.items {
		if waiting[i] = len(it.Dependencies); waiting[i] == 0 {
			free = append(free, i)
		}
	}
	for n := 0; n < len(free); n++ {
		for _, j := range p.behind[free[n]] {
			if waiting[j]--; waiting[j] == 0 {
				free = append(free, j)
			}
		}
	}
	// An item that is not free waits for another that is not. Whoever follows
	// that from any of them comes round.
	at := -1
	for i := range p.items {
		if waiting[i] > 0 {
			at = i
			break
		}
	}
	if at < 0 {
		return nil
	}
	var path []int
	seen := make(map[int]int) // where in path
	for {
		if start, again := seen[at]; again {
			return append(path[start:], at)
		}
		seen[at] = len(path)
		path = append(path, at)
		for _, id := range p.items[at].Dependencies {
			if j := index[id]; waiting[j] > 0 {
				at = j
				break
			}
		}
	}
}

// path names the items of a cycle, without the middle of a long one.
func (p *plan) path(cycle []int) string {
	const shown = 12
	var names []string
	for n, i := range cycle {
		switch left := len(cycle) - shown; {
		case left <= 1, n < shown/2, n >= shown/2+left:
			names = append(names, p.items[i].ID)
		case n == shown/2:
			names = append(names, fmt.Sprintf("(%d more)", left))
		}
	}
	return strings.Join(names, " -> ")
}

// allBehind returns the items that wait for item i, also those that wait for
// one that does, in the order of the plan.
func (p *plan) allBehind(i int) []int {
	found := make([]bool, len(p.items))
	todo := []int{i}
	for len(todo) > 0 {
		last := len(todo) - 1
		at := todo[last]
		todo = todo[:last]
		for _, j := range p.behind[at] {
			if !found[j] {
				found[j] = true
				todo = append(todo, j)
			}
		}
	}
	var all []int
	for j, yes := range found {
		if yes {
			all = append(all, j)
		}
	}
	return all
}

// loadPlan returns the plan in a file, or the one that checks this module if
// file is "", and the directory in which its commands run.
func loadPlan(file string) (p *plan, dir string, err error) {
	if file == "" {
		_, source, _, _ := runtime.Caller(0) // for a start from elsewhere: where the program was built
		if dir, err = os.Getwd(); err == nil {
			dir, err = findModule(dir, filepath.Dir(source))
		}
		if err != nil {
			return nil, "", err
		}
		p, err = newPlan(checkModule)
		return p, dir, err
	}
	items, err := readItems(file)
	if err == nil {
		p, err = newPlan(items)
	}
	if err != nil {
		return nil, "", fmt.Errorf("plan %s: %w", file, err)
	}
	return p, "", nil
}

// checkModule is the plan that comes with the program.
var checkModule = []item{
	{ID: "modules", Title: "list the modules", Command: "go list -m all"},
	{ID: "build", Title: "compile everything", Command: "go build ./..."},
	{ID: "vet", Title: "look for mistakes", Command: "go vet ./..."},
	{ID: "test-text", Title: "test a small package", Command: "go test ./internal/text"},
	{ID: "test-notify", Title: "test the inbox", Command: "go test ./notify"},
	{
		ID: "report", Title: "sum up", Dependencies: []string{"modules", "build", "vet", "test-text", "test-notify"},
		Command: `set -e
packages=$(go list ./...)
echo "$(go env GOOS)/$(go env GOARCH), $(go env GOVERSION): $(echo "$packages" | wc -l) packages are fine"`,
	},
}

const modulePath = "github.com/afoot-go/afoot"

// findModule returns the root of this module: the first directory that is one,
// at or above each of dirs.
func findModule(dirs ...string) (string, error) {
	for _, dir := range dirs {
		for above := filepath.Dir(dir); ; dir, above = above, filepath.Dir(above) {
			if isModuleRoot(dir) {
				return dir, nil
			}
			if dir == above {
				break
			}
		}
	}
	return "", fmt.Errorf("%s is not in a checkout of %s: go to one, or name a plan with -plan", dirs[0], modulePath)
}

func isModuleRoot(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "module" {
			return f[1] == modulePath
		}
	}
	return false
}
