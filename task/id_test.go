package task_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/cryptotest"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/task"
)

func TestNewID(t *testing.T) {
	for typ, prefix := range map[task.Type]string{
		task.LocalBash: "b", task.LocalAgent: "a", task.RemoteAgent: "r", task.InProcessTeammate: "t",
		task.LocalWorkflow: "w", task.MonitorMCP: "m", task.Dream: "d", "host_own": "x", "": "x",
	} {
		form := regexp.MustCompile("^" + prefix + "[0-9a-z]{8}$")
		for range 50 {
			id := task.NewID(typ)
			require.Regexp(t, form, string(id))
			parsed, err := task.ParseID(string(id))
			require.NoError(t, err)
			require.Equal(t, id, parsed)
		}
	}
}

// The ids are those of crypto/rand alone: the same bytes give the same ids.
func TestNewIDIsRepeatable(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 7)
	first := []task.ID{task.NewID(task.LocalBash), task.NewID(task.LocalBash)}
	cryptotest.SetGlobalRandom(t, 7)
	require.Equal(t, first, []task.ID{task.NewID(task.LocalBash), task.NewID(task.LocalBash)})
	require.NotEqual(t, first[0], first[1])
}

// Taking random bytes modulo 36 would make the digits 0 to 3 an eighth likelier
// than the other characters, which is eight standard deviations here.
func TestNewIDHasNoBias(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	const ids = 20_000
	count := map[rune]int{}
	for range ids {
		for _, c := range string(task.NewID(task.Dream))[1:] {
			count[c]++
		}
	}
	require.Len(t, count, 36)
	const want = ids * 8 / 36
	for c, n := range count {
		require.InDelta(t, want, n, 300, "%c", c)
	}
}

func TestBad1To19IDs(t *testing.T) {
	for _, s := range []string{
		"../../etc/passwd", "..", "/etc/passwd", "", ".lock", ".", "1\x00.json", "１", "а", "CON", "nul", "COM1",
		"-rf", "007", "Task1", "%2e%2e%2f5", "1.json", "-1", "0x1", "1e3",
		"b7x0k2m9", "b7x0k2m9qq", "B7x0k2m9q", "b7x0k2m9Q", "77x0k2m9q", "b7x0k2m9/", "b7x0k2m9\n", "b7x0k2mé",
		strings.Repeat("a", 1<<20),
	} {
		_, err := task.ParseID(s)
		require.ErrorIs(t, err, task.ErrBadID, "%.20q", s)
		require.Less(t, len(err.Error()), 300)
		require.NotContains(t, err.Error(), "\x00")
	}
}

func ExampleParseID() {
	_, err := task.ParseID("../../etc/passwd")
	fmt.Println(err)
	// Output: task: bad id "../../etc/passwd"
}

func BenchmarkNewID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		task.NewID(task.LocalBash)
	}
}
