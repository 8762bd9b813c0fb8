package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABadPlanIsOneLineAndStartsNothing(t *testing.T) {
	// Every plan but those that are no list of items begins with an item that
	// would leave a file.
	const ok = `{"id": "ok", "command": "touch started"}`
	for _, tt := range []struct {
		name string
		plan string
		want []string // in the line
	}{
		{"a cycle", `[` + ok + `,
			{"id": "in", "command": "true", "dependencies": ["a"]},
			{"id": "a", "command": "true", "dependencies": ["ok", "c"]},
			{"id": "b", "command": "true", "dependencies": ["a"]},
			{"id": "c", "command": "true", "dependencies": ["b"]}]`, []string{`item 3 ("a")`, "waits for itself: a -> c -> b -> a"}},
		{"an item that waits for itself", `[` + ok + `, {"id": "a", "command": "true", "dependencies": ["a"]}]`, []string{`item 2 ("a")`, "waits for itself: a -> a"}},
		{"a cycle longer than a line", longCycle(10_000), []string{`item 1 ("i0")`, "waits for itself: i0 -> i1 ->", " (9989 more) ", "-> i9999 -> i0"}},
		{"an unknown dependency", `[` + ok + `, {"id": "a", "command": "true", "dependencies": ["ok", "b"]}]`, []string{`item 2 ("a")`, `depends on "b", which is not in the plan`}},
		{"an empty dependency", `[` + ok + `, {"id": "a", "command": "true", "dependencies": [""]}]`, []string{`item 2 ("a")`, `depends on ""`}},
		{"a duplicate id", `[` + ok + `, {"id": "a", "command": "true"}, {"id": "ok", "command": "true"}]`, []string{`item 3 ("ok")`, "item 1 has the same id"}},

		{"an id that is a path", `[` + ok + `, {"id": "../a", "command": "true"}]`, []string{`item 2 ("../a")`, "an id is"}},
		{"an id in capitals", `[` + ok + `, {"id": "A", "command": "true"}]`, []string{`item 2 ("A")`, "an id is"}},
		{"an id that looks like a flag", `[` + ok + `, {"id": "-a", "command": "true"}]`, []string{`item 2 ("-a")`, "an id is"}},
		{"an id with a newline at its end", `[` + ok + `, {"id": "a\n", "command": "true"}]`, []string{`item 2 ("a\n")`, "an id is"}},
		{"an id of 65 characters", `[` + ok + `, {"id": "` + strings.Repeat("a", 65) + `", "command": "true"}]`, []string{"item 2", "an id is"}},
		{"an id that is a device on Windows", `[` + ok + `, {"id": "com1", "command": "true"}]`, []string{`item 2 ("com1")`, "device"}},
		{"no id", `[` + ok + `, {"command": "true"}]`, []string{"item 2: ", "no id"}},
		{"an id that is not text", `[` + ok + `, {"id": 7, "command": "true"}]`, []string{"item 2: id: ", "want a string"}},

		{"no command", `[` + ok + `, {"id": "a"}]`, []string{`item 2 ("a")`, "no command"}},
		{"an empty command", `[` + ok + `, {"id": "a", "command": " \n"}]`, []string{`item 2 ("a")`, "no command"}},
		{"a command with NUL", `[` + ok + `, {"id": "a", "command": "true\u0000"}]`, []string{`item 2 ("a")`, "NUL"}},
		{"a title with NUL", `[` + ok + `, {"id": "a", "title": "\u0000", "command": "true"}]`, []string{`item 2 ("a")`, "NUL"}},
		{"a command that is null", `[` + ok + `, {"id": "a", "command": null}]`, []string{`item 2 ("a"): command: `, "want a string"}},
		{"half of a surrogate pair", `[` + ok + `, {"id": "a", "command": "echo \ud800"}]`, []string{`item 2 ("a"): command: `, "no character"}},
		{"a number too large for any", `[` + ok + `, {"id": "a", "command": 1e999}]`, []string{`item 2 ("a"): command: `, "want a string"}},

		{"a duplicate key", `[` + ok + `, {"id": "a", "command": "true", "command": "false"}]`, []string{`item 2 ("a")`, `duplicate key "command"`}},
		{"a duplicate key, escaped", `[` + ok + `, {"id": "a", "command": "true", "comm\u0061nd": "false"}]`, []string{`item 2 ("a")`, `duplicate key "command"`}},
		{"an unknown field", `[` + ok + `, {"id": "a", "command": "true", "depends": []}]`, []string{`item 2 ("a")`, `unknown field "depends"`}},
		{"a field in capitals", `[` + ok + `, {"id": "a", "Command": "true"}]`, []string{`item 2 ("a")`, `unknown field "Command"`}},
		{"dependencies that are a string", `[` + ok + `, {"id": "a", "command": "true", "dependencies": "ok"}]`, []string{`item 2 ("a"): dependencies: `, "want an array"}},
		{"dependencies that are nested", `[` + ok + `, {"id": "a", "command": "true", "dependencies": [["ok"]]}]`, []string{`item 2 ("a"): dependencies: `, "want a string"}},
		{"an item that is an array", `[` + ok + `, [` + ok + `]]`, []string{"item 2: ", "want an object"}},
		{"an object instead of an array", `{"items": [` + ok + `]}`, []string{"want an array of items"}},

		{"no items", `[]`, []string{"no items"}},
		{"an empty file", ``, []string{"line 1", "unexpected end"}},
		{"a file cut off", `[` + ok + ",\n{\"id\": \"a\"", []string{"line 2", "unexpected end"}},
		{"text after the end", `[` + ok + "]\n\nx", []string{"line 3", "after top-level value"}},
		{"a second plan after the end", `[` + ok + `][` + ok + `]`, []string{"line 1", "after top-level value"}},
		{"a comma after the last item", `[` + ok + `,]`, []string{"line 1", "not JSON"}},
		{"bytes that are not UTF-8", "[" + ok + ",\n\n" + `{"id": "a", "command": "echo ` + "\xff" + `"}]`, []string{"line 3", "not UTF-8"}},
		{"nesting without end", strings.Repeat("[", 1_000_000), []string{"line 1", "not JSON"}},
		{"deep nesting", strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), []string{"item 1: ", "want an object"}},
		{"a file that is too large", `[` + ok + `]` + strings.Repeat(" ", maxFile), []string{"larger than 10485760 bytes"}},
		{"too many items", manyItems(maxItems + 1), []string{"more than 10000 items"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			require.NoError(t, os.WriteFile("plan.json", []byte(tt.plan), 0o600))
			got := execute(t, "-plan", "plan.json")
			requireRefused(t, got, append(tt.want, "plan.json")...)
		})
	}
}

// requireRefused fails the test unless the program has refused a plan with one
// line that contains all of want.
func requireRefused(t *testing.T, got outcome, want ...string) {
	t.Helper()
	require.Equal(t, 2, got.code, "exit code")
	require.Empty(t, got.stdout, "stdout")
	require.Regexp(t, `^agentloop: [^\n]{1,500}\n$`, got.stderr, "stderr")
	for _, part := range want {
		require.Contains(t, got.stderr, part, "stderr")
	}
	require.NoFileExists(t, "started", "what the first command would leave")
}

func TestAPlanFileThatCannotBeReadIsOneLine(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("folder", 0o700))
	for file, shown := range map[string]string{"missing\n.json": `missing\n.json`, "folder": "folder"} {
		got := execute(t, "-plan", file)
		requireRefused(t, got, "plan "+shown+": ")
		require.Equal(t, 1, strings.Count(got.stderr, shown), "mentions of the file in %q", got.stderr)
	}
}

// longCycle is a plan whose items each wait for the next, and the last one for
// the first.
func longCycle(n int) string {
	return jsonItems(n, func(i int) string { return fmt.Sprintf(`, "dependencies": ["i%d"]`, (i+1)%n) })
}

func manyItems(n int) string {
	return jsonItems(n, func(int) string { return "" })
}

func jsonItems(n int, more func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id": "i%d", "command": "touch started"%s}`, i, more(i))
	}
	return "[" + strings.Join(items, ",\n") + "]"
}

func TestAChainMayBeAsLongAsAPlan(t *testing.T) {
	items := make([]item, maxItems)
	for i := range items {
		items[i] = item{ID: fmt.Sprintf("i%d", i), Command: "true"}
		if i > 0 {
			items[i].Dependencies = []string{items[i-1].ID}
		}
	}
	p, err := newPlan(items)
	require.NoError(t, err, "newPlan")
	require.Len(t, p.allBehind(0), maxItems-1, "items behind the first")
	require.Equal(t, []int{maxItems - 1}, p.allBehind(maxItems-2), "items behind the last but one")
}

func TestEverythingAnItemMayHaveIsRead(t *testing.T) {
	items, err := decodeItems([]byte(` [ {"dependencies": ["b", "c"], "command": "echo \ud83d\ude00 ` + "\ufffd" + `", "title": "T", "id": "a"}, {"id": "b", "command": "x", "dependencies": []} ] `))
	require.NoError(t, err, "decodeItems")
	require.Equal(t, []item{
		{ID: "a", Title: "T", Command: "echo 😀 \ufffd", Dependencies: []string{"b", "c"}},
		{ID: "b", Command: "x"},
	}, items)
}

func TestTheOwnPlanIsGoodAndEndsWithAReport(t *testing.T) {
	p, err := newPlan(checkModule)
	require.NoError(t, err, "newPlan")
	require.Len(t, p.items, 6)
	report := p.items[len(p.items)-1]
	var others []string
	for _, it := range p.items[:len(p.items)-1] {
		others = append(others, it.ID)
	}
	require.Equal(t, others, slices.Clone(report.Dependencies), "what %s waits for", report.ID)
}

func TestTheModuleIsFoundFromEveryDirectoryInIt(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	nested := filepath.Join(root, "internal", "tools") // a module of its own
	elsewhere := t.TempDir()
	for _, dirs := range [][]string{{root}, {filepath.Join(root, "task", "shell")}, {nested}, {elsewhere, nested}} {
		got, err := findModule(dirs...)
		require.NoError(t, err, "findModule(%q)", dirs)
		require.Equal(t, root, got, "findModule(%q)", dirs)
	}
	_, err = findModule(elsewhere, "built/without/paths")
	require.ErrorContains(t, err, elsewhere+" is not in a checkout of github.com/afoot-go/afoot", "findModule")
}
