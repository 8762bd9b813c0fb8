// Mutate breaks the code, one line at a time, and makes sure that a test notices:
// for each entry of the table it runs one test with the line as it is, which must
// pass, and with the line broken, which must fail. The checkout is not touched:
// the broken file is laid over the real one for that run alone.
//
//	go run ./internal/mutate            (all)
//	go run ./internal/mutate -run push  (those whose name matches)
//
// It exits with 1 if a mutation was not noticed, or no longer applies.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A mutation is one way to break the code.
type mutation struct {
	name string // what is wrong then
	file string // below the module's root
	old  string // stands there once
	new  string
	test string // fails then; in the package of pkg
	pkg  string // if empty, that of file
}

// limit bounds one run: a mutation may make a test hang.
const limit = 3 * time.Minute

func main() {
	only := flag.String("run", "", "only mutations whose name matches `PATTERN`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	var errs []error
	noticed := 0
	passes := make(map[string]error)
	for _, m := range mutations {
		if !pattern.MatchString(m.name) {
			continue
		}
		began := time.Now()
		err := m.check(ctx, root, tmp, passes)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.name, err))
			fmt.Printf("FAILED   %s: %v\n", m.name, err)
			continue
		}
		noticed++
		fmt.Printf("noticed  %s, by %s in %.1fs\n", m.name, m.test, time.Since(began).Seconds())
	}
	fmt.Printf("%d of %d mutations noticed\n", noticed, noticed+len(errs))
	return errors.Join(errs...)
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
}

// check runs the test as it is, once for all mutations that name it, and broken.
func (m mutation) check(ctx context.Context, root, tmp string, passes map[string]error) error {
	overlay, err := m.overlay(root, tmp)
	if err != nil {
		return err
	}
	if m.pkg == "" {
		m.pkg = "./" + filepath.ToSlash(filepath.Dir(m.file))
	}
	key := m.pkg + " " + m.test
	if _, ran := passes[key]; !ran {
		_, passes[key] = m.goTest(ctx, root)
	}
	if passes[key] != nil {
		return fmt.Errorf("%s fails as it is: %w", m.test, passes[key])
	}
	out, err := m.goTest(ctx, root, "-overlay="+overlay)
	switch {
	case err == nil:
		return fmt.Errorf("%s did not notice", m.test)
	case ctx.Err() != nil:
		return ctx.Err()
	case !strings.Contains(out, "--- FAIL: "+m.test), strings.Contains(out, "[build failed]"):
		return fmt.Errorf("%s did not fail, but: %w\n%s", m.test, err, out)
	}
	return nil
}

// overlay writes the broken file and what tells the go command to use it.
func (m mutation) overlay(root, tmp string) (string, error) {
	path := filepath.Join(root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s has the text %d times: %q", m.file, n, m.old)
	}
	broken := filepath.Join(tmp, "broken.go")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: broken}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(tmp, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// goTest runs the test and returns what it printed.
func (m mutation) goTest(ctx context.Context, root string, flags ...string) (string, error) {
	args := append([]string{"test", "-count=1", "-timeout=" + limit.String(), "-run=^" + m.test + "$"}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, m.pkg)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}
