package text_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/text"
)

func TestLineAndBlock(t *testing.T) {
	tests := []struct {
		name  string
		in    string
		line  string
		block string // same as line if empty
	}{
		{name: "empty"},
		{name: "plain", in: `npm "install" <x> & 'y'`, line: `npm "install" <x> & 'y'`},
		{name: "other scripts", in: "Grüße, 世界 🙂", line: "Grüße, 世界 🙂"},
		{name: "joiners that spelling needs", in: "می\u200cخواهم 👩\u200d💻 ❤\ufe0f", line: "می\u200cخواهم 👩\u200d💻 ❤\ufe0f"},
		{name: "a selector and a joiner after a character", in: "❤\ufe0f\u200d🔥 1\ufe0f\u20e3", line: "❤\ufe0f\u200d🔥 1\ufe0f\u20e3"},
		{name: "runs of selectors", in: "a\ufe0f\ufe0e\ufe0f\ufe0fb\ufe0f", line: "a\ufe0f" + `\ufe0e\ufe0f\ufe0f` + "b\ufe0f"},
		{name: "runs of joiners", in: "a\u200c\u200d\u200cb\u200d\u200d", line: "a\u200c" + `\u200d\u200c` + "b\u200d" + `\u200d`},
		{name: "selector after joiner", in: "a\u200d\ufe0f\u200d", line: "a\u200d" + `\ufe0f\u200d`},
		{name: "nothing to attach to", in: "\ufe0f \u200d\u2003\ufe0e\u2800\u200c", line: `\ufe0f \u200d` + "\u2003" + `\ufe0e` + "\u2800" + `\u200c`},
		{name: "nothing to attach to on a line", in: "a\n\ufe0fb\t\u200d", line: `a\n\ufe0fb\t\u200d`, block: "a\n\\ufe0fb\t\\u200d"},
		{name: "attached to what is replaced", in: "\x01\ufe0f\xff\u200d\u200b\ufe0e", line: `\x01\ufe0f` + "\ufffd" + `\u200d\u200b\ufe0e`},
		{name: "newline and tab", in: "a\n\tb", line: `a\n\tb`, block: "a\n\tb"},
		{name: "carriage return", in: "a\r\nb\r", line: `a\r\nb\r`, block: "a\\r\nb\\r"},
		{name: "backslash stays", in: `C:\new \x1b \\`, line: `C:\new \x1b \\`},
		{name: "NUL, BEL and DEL", in: "\x00\a\x7f", line: `\x00\x07\x7f`},
		{name: "clipboard write", in: "\x1b]52;c;aGk=\a", line: `\x1b]52;c;aGk=\x07`},
		{name: "C1", in: "\u0080\u0085\u009b31m\u009f\u00a0", line: `\u0080\u0085\u009b31m\u009f` + "\u00a0"},
		{name: "overrides and embeddings", in: "\u202a\u202b\u202c\u202d\u202e", line: `\u202a\u202b\u202c\u202d\u202e`},
		{name: "isolates", in: "\u2066\u2067\u2068\u2069", line: `\u2066\u2067\u2068\u2069`},
		{name: "direction marks", in: "\u061c\u200e\u200f", line: `\u061c\u200e\u200f`},
		{name: "line and paragraph separator", in: "a\u2028b\u2029c", line: `a\u2028b\u2029c`},
		{name: "without width", in: "a\u200bb\ufeffc\u2060d\u2064e\u00adf\u180eg", line: `a\u200bb\ufeffc\u2060d\u2064e\u00adf\u180eg`},
		{name: "bytes in variation selectors", in: "🙂\ufe00\ufe01\ufe0d\U000e0100\U000e01ef", line: `🙂\ufe00\ufe01\ufe0d\U000e0100\U000e01ef`},
		{name: "fillers and blanks", in: "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\U0001d159", line: `\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\U0001d159`},
		{name: "Mongolian selectors", in: "\u1820\u180b\u180c\u180d\u180f", line: "\u1820" + `\u180b\u180c\u180d\u180f`},
		{name: "controls of shorthand and music", in: "\U0001bca0\U0001bca3\U0001d173\U0001d17a", line: `\U0001bca0\U0001bca3\U0001d173\U0001d17a`},
		{name: "not assigned but not to be drawn", in: "\ufff0\ufff8\u2065\U000e0fff", line: `\ufff0\ufff8\u2065\U000e0fff`},
		{name: "spaces", in: "a\u00a0\u2003\u3000\u2800b", line: "a\u00a0\u2003\u3000\u2800b"},
		{name: "annotation", in: "\ufff9\ufffa\ufffb", line: `\ufff9\ufffa\ufffb`},
		{name: "noncharacters", in: "\ufdd0\ufdef\ufffe\uffff\U0001fffe\U0010ffff", line: `\ufdd0\ufdef\ufffe\uffff\U0001fffe\U0010ffff`},
		{name: "tags", in: "\U000e0001\U000e0041\U000e007f\U000e0100", line: `\U000e0001\U000e0041\U000e007f\U000e0100`},
		{name: "neighbours of what is hidden", in: "\u2027\u202f\u205f\u2070\ufdcf\ufdf0\ufffc\U000e1000", line: "\u2027\u202f\u205f\u2070\ufdcf\ufdf0\ufffc\U000e1000"},
		{name: "not UTF-8", in: "a\xffb\xc3\xe2\x80", line: "a\ufffdb\ufffd\ufffd\ufffd"},
		{name: "surrogate", in: "\xed\xa0\x80", line: "\ufffd\ufffd\ufffd"},
		{name: "overlong", in: "\xc0\x8a", line: "\ufffd\ufffd"},
		{name: "replacement character stays", in: "\ufffd\x01", line: "\ufffd" + `\x01`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.line, text.Line(tt.in), "Line(%q)", tt.in)
			block := tt.block
			if block == "" {
				block = tt.line
			}
			require.Equal(t, block, text.Block(tt.in), "Block(%q)", tt.in)
		})
	}
}

// Between two letters every character is shown or escaped as the tables of
// Unicode say.
func TestEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		s := "a" + string(r) + "b"
		if got := text.Line(s); (got != s) != acts(r) {
			t.Errorf("Line(%q) = %q; it acts without being seen: %v", s, got, acts(r))
		}
	}
}

func TestHarmlessStringIsNotCopied(t *testing.T) {
	s := strings.Repeat("Grüße, 世界 ❤\ufe0f \ufffd\n", 100)
	var sum int
	require.Zero(t, testing.AllocsPerRun(10, func() {
		sum += len(text.Block(s)) + len(text.Line(s[:len(s)/100-1])) + len(text.Clip(s, len(s)))
	}))
	require.Positive(t, sum)
}

func TestClip(t *testing.T) {
	tests := []struct {
		name string
		in   string
		max  int
		want string
	}{
		{"empty", "", 0, ""},
		{"negative", "abc", -1, ""},
		{"zero", "abc", 0, ""},
		{"one", "abc", 1, "…"},
		{"one that fits", "a", 1, "a"},
		{"shorter", "abc", 4, "abc"},
		{"just fits", "abc", 3, "abc"},
		{"cut", "abcd", 3, "ab…"},
		{"counts characters, not bytes", "世界世界", 4, "世界世界"},
		{"cuts between characters", "世界世界", 3, "世界…"},
		{"cuts before the last", "ü世", 1, "…"},
		{"bytes that are not UTF-8", "\xff\xff\xff", 2, "\xff…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, text.Clip(tt.in, tt.max), "Clip(%q, %d)", tt.in, tt.max)
		})
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "a\nb", "\x1b[2J", "\u202eabc", "\xff\xfe", "\u2028", "\ufeff", "\U000e0041", `\x1b`, "世界", "\u0085",
		"🙂\ufe00\ufe0d\U000e0110", "a\ufe0f\ufe0e\ufe0f", "a\u200c\u200d\u200c", "❤\ufe0f\u200d🔥", "\ufe0f", "\n\u200d", "\xff\ufe0f", "\u3164\u115f\u2800\u034f", "\u1820\u180b",
	} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		line, block := text.Line(s), text.Block(s)
		require.Equal(t, line, text.Line(line), "Line twice")
		require.Equal(t, block, text.Block(block), "Block twice")
		require.Equal(t, line, text.Line(block), "Line of Block")
		for _, r := range line {
			require.False(t, acts(r), "%q in %q", r, line)
		}
		for _, r := range block {
			require.True(t, r == '\n' || r == '\t' || !acts(r), "%q in %q", r, block)
		}
		require.NotRegexp(t, nothingToAttachTo, line)
		require.NotRegexp(t, nothingToAttachTo, block)
		require.True(t, utf8.ValidString(line))
		require.True(t, utf8.ValidString(block))

		clipped := text.Clip(s, limit)
		require.LessOrEqual(t, utf8.RuneCountInString(clipped), max(0, limit))
		if utf8.RuneCountInString(s) <= limit {
			require.Equal(t, s, clipped)
		} else if limit > 0 {
			head, ok := strings.CutSuffix(clipped, "…")
			require.True(t, ok && strings.HasPrefix(s, head), "Clip(%q, %d) = %q", s, limit, clipped)
			require.Equal(t, limit, utf8.RuneCountInString(clipped))
		}
	})
}

// nothingToAttachTo finds joiners and selectors that mean nothing where they
// stand.
var nothingToAttachTo = regexp.MustCompile(`(?:^|[\s\p{Z}\x{2800}])[\x{200c}\x{200d}\x{fe0e}\x{fe0f}]` +
	`|[\x{200c}\x{200d}][\x{200c}\x{200d}\x{fe0e}\x{fe0f}]|[\x{fe0e}\x{fe0f}][\x{fe0e}\x{fe0f}]`)

// acts reports, by the tables of Unicode, whether r does something to a text
// without being seen, after a letter.
func acts(r rune) bool {
	switch {
	case r == 0x200c, r == 0x200d, r == 0xfe0e, r == 0xfe0f: // spelling needs them
		return false
	case unicode.In(r, unicode.Prepended_Concatenation_Mark), 0x13430 <= r && r <= 0x1343f: // Arabic and Egyptian, drawn
		return false
	case 0xd800 <= r && r <= 0xdfff: // string(r) is U+FFFD
		return false
	}
	return unicode.In(
		r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Noncharacter_Code_Point,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector,
	) || r == 0x1d159 // a notehead that is not there
}

func BenchmarkBlock(b *testing.B) {
	for name, s := range map[string]string{
		"plain":   strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 100),
		"utf8":    strings.Repeat("Der flinke braune Fuchs springt über den Zaun.\n", 100),
		"colours": strings.Repeat("\x1b[31mThe quick\x1b[0m brown fox jumps over it.\n", 100),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				text.Block(s)
			}
		})
	}
}
