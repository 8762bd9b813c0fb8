package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/leak"
)

// asProgram has the test binary be the program itself, for tests that need a
// process to send signals to.
const asProgram = "AGENTLOOP_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	leak.Main(m)
}

// An outcome is what the program left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// execute runs the program with the given arguments. Whatever the commands
// print, its own output is plain text.
func execute(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr)
	got := outcome{code, stdout.String(), stderr.String()}
	requirePlain(t, got.stdout, "stdout")
	requirePlain(t, got.stderr, "stderr")
	return got
}

// requirePlain fails the test unless s is lines of what can be printed, and
// tabs.
func requirePlain(t *testing.T, s, what string) {
	t.Helper()
	acts := func(r rune) bool { return !strconv.IsPrint(r) && r != '\n' && r != '\t' }
	require.True(t, utf8.ValidString(s) && !strings.ContainsFunc(s, acts), "%s is plain text: %q", what, s)
}

// lastLine returns the last line of stdout.
func (o outcome) lastLine() string {
	lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	return lines[len(lines)-1]
}

// Who copies the program has the module, not the packages inside it.
func TestTheProgramUsesNothingInternal(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imported := range parsed.Imports {
			require.NotContains(t, imported.Path.Value, "/internal/", file)
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"Grüße, 世界 🙂 'it' \\ \"x\"": "Grüße, 世界 🙂 'it' \\ \"x\"",
		"\x1b[2J\a\r\n\t\x00\x7f":   `\x1b[2J\a\r\n\t\x00\x7f`,
		"\u0085\u202eabc\u2028":     `\u0085\u202eabc\u2028`,
		"\ufeff\U000e0041\u200b":    `\ufeff\U000e0041\u200b`,
		"a\xffb":                    "a\ufffdb",
	} {
		require.Equal(t, want, plain(in), "plain(%q)", in)
	}
}

func TestClip(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "abc": "abc", "世界世": "世界世", "abcd": "ab…", "世界世界": "世界…",
	} {
		require.Equal(t, want, clip(in, 3), "clip(%q, 3)", in)
	}
}

func TestWrongArgumentsExitWithTwo(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string // on stderr
	}{
		{"an unknown flag", []string{"-plann", "x"}, "-plann"},
		{"a flag without its value", []string{"-plan"}, "needs an argument"},
		{"an empty file name", []string{"-plan="}, "no file name"},
		{"an argument that is no flag", []string{"plan.json"}, `unexpected argument "plan.json"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := execute(t, tt.args...)
			require.Equal(t, 2, got.code, "exit code")
			require.Contains(t, got.stderr, tt.want, "stderr")
			require.Empty(t, got.stdout, "stdout")
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	got := execute(t, "-h")
	require.Equal(t, 0, got.code, "exit code")
	require.Contains(t, got.stderr, "-plan FILE", "stderr")
}
