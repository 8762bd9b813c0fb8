package output_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/output"
)

// marker is the line that stands for what a view leaves out.
var marker = regexp.MustCompile(`\n\[… (\d+) bytes, (\d+) lines left out from offset (\d+) on(?:; all of it is in (\S+))? …\]\n`)

func view(t testing.TB, o *output.TaskOutput, offset int64, limit int) output.View {
	t.Helper()
	v, err := o.View(offset, limit)
	require.NoError(t, err)
	return v
}

func TestShortViewIsWhole(t *testing.T) {
	o := open(t, output.Config{})
	require.Equal(t, output.View{}, view(t, o, 0, 0))
	write(t, o, "one\n\ttwo é 日本語 😀\n")
	require.Equal(t, output.View{Text: "one\n\ttwo é 日本語 😀\n", Next: o.Stat().Size}, view(t, o, 0, 0))
	require.Equal(t, output.View{Text: "\ttwo é 日本語 😀\n", Next: o.Stat().Size}, view(t, o, 4, 0))
	require.Equal(t, output.View{Next: 1000}, view(t, o, 1000, 0))
	require.NotRegexp(t, marker, view(t, o, 0, utf8.RuneCountInString("one\n\ttwo é 日本語 😀\n")).Text)
}

func TestViewIsSafe(t *testing.T) {
	for raw, want := range map[string]string{
		"a\x00b\n":        "a\\x00b\n",
		"\x1b[31mred":     "\\x1b[31mred",
		"\xed\xa0\xbdX":   "\uFFFD\uFFFD\uFFFDX",
		"\u202eevil":      "\\u202eevil",
		"\xd6\xd0\xce\n":  "\uFFFD\uFFFD\uFFFD\n",
		"50%\r100%\n":     "50%\\r100%\n",
		"line\u2028break": "line\\u2028break",
	} {
		o := open(t, output.Config{})
		write(t, o, raw)
		o.End()
		require.Equal(t, want, view(t, o, 0, 0).Text, "%q", raw)
		require.Equal(t, raw, all(t, o), "raw reads are exact")
	}
}

// Whatever is cut, head and tail are those of the output, and the marker says
// exactly what is missing.
func TestClippedView(t *testing.T) {
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d é\n", i)
		}
		return b.String()
	}
	for name, raw := range map[string]string{
		"lines":           lines(5000),
		"many megabytes":  lines(300_000),
		"one long line":   strings.Repeat("x", 100_000),
		"wide characters": strings.Repeat("😀", 50_000),
		"controls":        strings.Repeat("\x00\x1b", 50_000),
		"invalid":         strings.Repeat("\xff", 100_000),
		"just too long":   strings.Repeat("é", 1001),
		"tail matters":    strings.Repeat("x", 200_000) + "\nerror: BOOM\n",
	} {
		for _, mem := range []int64{0, 100} {
			for _, limit := range []int{10, 999, 1000} {
				o := open(t, output.Config{MemLimit: mem})
				write(t, o, raw)
				o.End()
				v := view(t, o, 0, limit)
				require.True(t, utf8.ValidString(v.Text), name)
				require.EqualValues(t, len(raw), v.Next)
				at := marker.FindStringSubmatchIndex(v.Text)
				require.NotNil(t, at, "%s: %q", name, v.Text)
				m := marker.FindStringSubmatch(v.Text)
				head, tail := v.Text[:at[0]], v.Text[at[1]:]
				require.LessOrEqual(t, utf8.RuneCountInString(head+tail), limit)
				require.GreaterOrEqual(t, utf8.RuneCountInString(head+tail), limit/2-8, "%s: not much less than may be", name)
				bytes, _ := strconv.Atoi(m[1])
				offset, _ := strconv.Atoi(m[3])
				gap := raw[offset : offset+bytes]
				require.Equal(t, strconv.Itoa(strings.Count(gap, "\n")), m[2], "%s: lines", name)
				require.Equal(t, o.Stat().Path, m[4])
				if utf8.ValidString(raw) && !strings.ContainsRune(raw, 0) {
					require.Equal(t, raw[:offset], head, name)
					require.Equal(t, raw[offset+bytes:], tail, name)
				}
				if name == "lines" && limit > 100 {
					require.True(t, strings.HasSuffix(head, "\n") && strings.HasPrefix(tail, "line"), "cut at lines")
				}
				if name == "tail matters" && limit > 100 {
					require.Contains(t, tail, "error: BOOM")
				}
			}
		}
	}
}

// Views of a growing output, each from where the last one ended, show every
// character once, however the bytes arrive.
func TestViewsOfGrowingOutput(t *testing.T) {
	const want = "日本語😀é\nabc"
	o := open(t, output.Config{})
	var got strings.Builder
	next := int64(0)
	for i := range len(want) {
		write(t, o, want[i:i+1])
		v := view(t, o, next, 0)
		next = v.Next
		got.WriteString(v.Text)
	}
	require.Equal(t, want, got.String())

	write(t, o, "é"[:1])
	require.Empty(t, view(t, o, next, 0).Text)
	o.End()
	require.Equal(t, "\uFFFD", view(t, o, next, 0).Text, "no more will come")
}

func TestDefaultView(t *testing.T) {
	o := open(t, output.Config{})
	write(t, o, strings.Repeat("x", output.DefaultView))
	require.NotRegexp(t, marker, view(t, o, 0, 0).Text)
	write(t, o, "x")
	require.Regexp(t, marker, view(t, o, 0, 0).Text)
}

// A view costs what its limit says, not what the output is long.
func BenchmarkView(b *testing.B) {
	for _, size := range []int{100_000, 100_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			o := open(b, output.Config{})
			write(b, o, strings.Repeat(strings.Repeat("x", 79)+"\n", size/80))
			b.ReportAllocs()
			for b.Loop() {
				view(b, o, 0, 2000)
			}
		})
	}
}
