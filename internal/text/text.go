// Package text makes text that came from elsewhere harmless to show: to a
// terminal, in a log, to a model.
//
// Whatever can act on a reader without being seen by one is replaced by an
// escape in the manner of Go source, such as \x1b, \u202e or \U000e0041. That
// covers control characters, controls of the writing direction, separators
// that only some programs take for a line break, all that Unicode lets a
// program not draw, such as fillers, tags and variation selectors, and
// noncharacters. Bytes that are not UTF-8 become U+FFFD.
//
// Persian, Indic scripts and emoji are misspelled without the joiners U+200C
// and U+200D and the selectors U+FE0E and U+FE0F. Those stay where they can
// mean something: after a character that can be seen come at most one selector
// and then at most one joiner. So no run of them can carry a message.
//
// A backslash in the input is left alone. The result is for reading, not for
// decoding: a text that spells an escape out looks like one that was escaped.
package text

import (
	"unicode"
	"unicode/utf8"
)

// Line returns s as one line: [Block], with newlines and tabs shown as \n and
// \t. A string that is harmless already is returned as it is; so Line twice is
// Line once.
func Line(s string) string { return visible(s, false) }

// Block returns s with all that is not plain text made visible; newlines and
// tabs stay. A string that is harmless already is returned as it is; so Block
// twice is Block once.
func Block(s string) string { return visible(s, true) }

// Clip returns s if it has at most max characters, else its first max-1
// characters and an ellipsis. A max below one gives the empty string. A
// character is a rune; a byte that is not UTF-8 counts as one.
func Clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	if max < 1 {
		return ""
	}
	cut, n := 0, 0 // cut: where the last character that leaves room for "…" ends
	for i := range s {
		if n == max-1 {
			cut = i
		}
		if n == max {
			return s[:cut] + "…"
		}
		n++
	}
	return s
}

// visible returns s with everything but plain text escaped, newlines and tabs
// too unless layout says to keep them.
func visible(s string, layout bool) string {
	start := harmful(s, layout)
	if start == len(s) {
		return s
	}
	b := make([]byte, 0, len(s)+len(s)/8+16)
	for {
		b = append(b, s[:start]...)
		s = s[start:]
		if s == "" {
			return string(b)
		}
		r, size := utf8.DecodeRuneInString(s)
		b = appendShown(b, r)
		s = s[size:]
		start = harmful(s, layout)
	}
}

// harmful returns the index of the first character of s to be replaced, or
// len(s) if there is none. The s of a call begins where a text does or after a
// character that was replaced: either way nothing can be attached there.
func harmful(s string, layout bool) int {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case ' ' <= c && c <= '~', layout && (c == '\n' || c == '\t'):
			i++
			continue
		case c < utf8.RuneSelf:
			return i
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || hidden(r) || attaches(r) && !mayAttach(s[:i], r) {
			return i
		}
		i += size
	}
	return len(s)
}

// hidden reports whether r, which is not ASCII, acts on text without showing,
// wherever it stands.
//
// Spaces of all kinds pass, for a reader sees that something is there. So does
// the blank of Braille, U+2800, which charts drawn in Braille are full of.
func hidden(r rune) bool {
	switch {
	case r < 0xa0: // C1 controls
		return true
	case r < 0x034f:
		return r == 0x00ad // soft hyphen
	case r < 0x200b:
		switch r {
		case 0x034f, // combining grapheme joiner
			0x061c,         // Arabic letter mark
			0x115f, 0x1160, // Hangul fillers
			0x17b4, 0x17b5, // Khmer inherent vowels
			0x180b, 0x180c, 0x180d, 0x180e, 0x180f: // Mongolian selectors and vowel separator
			return true
		}
		return false
	case r <= 0x206f:
		return r == 0x200b || // zero-width space
			r == 0x200e || r == 0x200f || // direction marks
			0x2028 <= r && r <= 0x202e || // line and paragraph separator, embeddings, overrides
			0x2060 <= r // word joiner, invisible operators, isolates, deprecated controls
	case r < 0xfdd0:
		return r == 0x3164 // Hangul filler
	case r <= 0xfdef, r&0xfffe == 0xfffe: // noncharacters
		return true
	case r <= 0xffff:
		return 0xfe00 <= r && r <= 0xfe0d || // variation selectors
			r == 0xfeff || // byte order mark
			r == 0xffa0 || // halfwidth Hangul filler
			0xfff0 <= r && r <= 0xfffb // not assigned, interlinear annotation
	}
	return 0x1bca0 <= r && r <= 0x1bca3 || // shorthand controls
		r == 0x1d159 || 0x1d173 <= r && r <= 0x1d17a || // music: null notehead, beams, slurs
		0xe0000 <= r && r <= 0xe0fff // tags, more variation selectors
}

// attaches reports whether r is not seen but means something after a character
// that is.
func attaches(r rune) bool { return isJoiner(r) || isSelector(r) }

func isJoiner(r rune) bool { return r == '\u200c' || r == '\u200d' }

func isSelector(r rune) bool { return r == '\ufe0e' || r == '\ufe0f' }

// mayAttach reports whether r, which attaches, may come after before, in which
// nothing is harmful.
func mayAttach(before string, r rune) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	switch {
	case before == "", unicode.IsSpace(last), last == '\u2800', isJoiner(last):
		return false
	case isSelector(last):
		return isJoiner(r)
	}
	return true
}

// appendShown appends r, which is harmful, as Go source writes it in a string.
// What was not UTF-8 is U+FFFD by now and can be seen.
func appendShown(b []byte, r rune) []byte {
	switch {
	case r == utf8.RuneError:
		return utf8.AppendRune(b, r)
	case r == '\n':
		return append(b, `\n`...)
	case r == '\r':
		return append(b, `\r`...)
	case r == '\t':
		return append(b, `\t`...)
	case r < utf8.RuneSelf:
		return appendHex(append(b, `\x`...), r, 2)
	case r <= 0xffff:
		return appendHex(append(b, `\u`...), r, 4)
	}
	return appendHex(append(b, `\U`...), r, 8)
}

// appendHex appends r as that many hexadecimal digits.
func appendHex(b []byte, r rune, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		b = append(b, "0123456789abcdef"[r>>(4*i)&0xf])
	}
	return b
}
