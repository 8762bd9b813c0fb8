// Package text makes text that came from elsewhere harmless to show: to a
// terminal, in a log, to a model.
//
// Whatever can act on a reader without being seen by one is replaced by an
// escape in the manner of Go source, such as \x1b, \u202e or \U000e0041. That
// covers control characters, controls of the writing direction, separators
// that only some programs take for a line break, characters without width,
// tags and noncharacters. Bytes that are not UTF-8 become U+FFFD.
//
// A backslash in the input is left alone. The result is for reading, not for
// decoding: a text that spells an escape out looks like one that was escaped.
package text

import "unicode/utf8"

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
// len(s) if there is none.
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
		if r == utf8.RuneError && size == 1 || hidden(r) {
			return i
		}
		i += size
	}
	return len(s)
}

// hidden reports whether r, which is not ASCII, acts on text without showing.
//
// The two joiners U+200C and U+200D pass: Persian, Indic scripts and emoji are
// misspelled without them.
func hidden(r rune) bool {
	switch {
	case r < 0xa0: // C1 controls
		return true
	case r < 0x061c:
		return r == 0x00ad // soft hyphen
	case r < 0x200b:
		return r == 0x061c || r == 0x180e // Arabic letter mark, Mongolian vowel separator
	case r <= 0x206f:
		return r == 0x200b || // zero-width space
			r == 0x200e || r == 0x200f || // direction marks
			0x2028 <= r && r <= 0x202e || // line and paragraph separator, embeddings, overrides
			0x2060 <= r // word joiner, invisible operators, isolates, deprecated controls
	case r == 0xfeff: // byte order mark
		return true
	case 0xfdd0 <= r && r <= 0xfdef, r&0xfffe == 0xfffe: // noncharacters
		return true
	case 0xfff9 <= r && r <= 0xfffb: // interlinear annotation
		return true
	}
	return 0xe0000 <= r && r <= 0xe0fff // tags, variation selectors that can carry hidden text
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
