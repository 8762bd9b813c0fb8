package shell

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// NonInteractive returns the entries that keep programs from waiting for
// somebody at a terminal. Commands get them in place of the host's own; a
// command's SetEnv overrides each.
func NonInteractive() []string {
	return []string{
		"TERM=dumb",
		"EDITOR=false", // an editor that fails: git commit without -m ends at once
		"VISUAL=false",
		"PAGER=cat",
		"MANPAGER=cat",
		"SYSTEMD_PAGER=cat",
		"GIT_EDITOR=false",
		"GIT_SEQUENCE_EDITOR=false",
		"GIT_PAGER=cat",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=false",
		"SSH_ASKPASS_REQUIRE=never",
		"DEBIAN_FRONTEND=noninteractive",
		"NPM_CONFIG_YES=true",
		"NPM_CONFIG_PROGRESS=false",
		"PIP_NO_INPUT=1",
	}
}

// shellVariables change what a script does before it has begun: a file that is
// read first, and options that are set.
var shellVariables = []string{"BASH_ENV", "SHELLOPTS", "BASHOPTS"}

// baseEnv returns the environment of commands that bring none.
func baseEnv(cfg Config) []string {
	if cfg.Env != nil {
		return slices.Clone(cfg.Env)
	}
	drop := append(slices.Clone(cfg.DropEnv), shellVariables...)
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return matchesAny(drop, name)
	})
	return override(env, NonInteractive())
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		if err != nil {
			panic(fmt.Sprintf("shell: New with DropEnv pattern %q: %v", pattern, err))
		}
		return ok
	})
}

// override returns env with entries set over those of the same name.
func override(env, entries []string) []string {
	if len(entries) == 0 {
		return env
	}
	last := make(map[string]string, len(entries))
	for _, entry := range entries {
		name, _, _ := strings.Cut(entry, "=")
		last[name] = entry
	}
	out := make([]string, 0, len(env)+len(entries))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := last[name]; !set {
			out = append(out, entry)
		}
	}
	return slices.AppendSeq(out, maps.Values(last))
}

// checkEnv returns an error for an entry that is not NAME=VALUE.
func checkEnv(entries []string) error {
	for _, entry := range entries {
		if strings.IndexByte(entry, '=') <= 0 {
			return fmt.Errorf("%w: environment entry %.64q is not NAME=VALUE", ErrInvalid, entry)
		}
		if strings.IndexByte(entry, 0) >= 0 {
			return fmt.Errorf("%w: environment entry %.64q has a NUL byte", ErrInvalid, entry)
		}
	}
	return nil
}
