package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/leak"
	"github.com/afoot-go/afoot/internal/text"
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
	require.Equal(t, text.Block(got.stdout), got.stdout, "stdout is plain text")
	require.Equal(t, text.Block(got.stderr), got.stderr, "stderr is plain text")
	return got
}

// lastLine returns the last line of stdout.
func (o outcome) lastLine() string {
	lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	return lines[len(lines)-1]
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
