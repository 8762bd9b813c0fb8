package output

import (
	"fmt"
	"unicode/utf8"

	"github.com/afoot-go/afoot/internal/text"
)

const (
	// DefaultView is the number of characters in a view whose limit is zero.
	DefaultView = 32_000

	// MaxView is the number of characters that a view has at most.
	MaxView = 1 << 20
)

// A View is output as text that can be shown: valid UTF-8, without control
// characters but newline and tab, and clipped.
type View struct {
	Text string `json:"text"`
	Next int64  `json:"next"` // the offset after what Text stands for
}

// View returns what was printed from offset on as text of at most limit
// characters, not counting the line that says what was left out. If limit is
// zero or negative, DefaultView is used, and MaxView if it is larger than that.
//
// Longer text loses its middle. The line in its place says how many bytes and
// lines are missing, from which offset on, and which file has them, if one
// does. A character of which only the first bytes have been printed is held
// back for the next view while the output goes on. Cost and memory depend on
// limit, not on the size of the output.
func (o *TaskOutput) View(offset int64, limit int) (View, error) {
	if offset < 0 {
		return View{}, ErrOffset
	}
	if limit <= 0 {
		limit = DefaultView
	}
	limit = min(limit, MaxView)
	st := o.Stat()
	if offset >= st.Size {
		return View{Next: offset}, o.readable()
	}
	end, err := o.wholeUntil(offset, st)
	if err != nil {
		return View{}, err
	}

	// A character takes at most four bytes: so much holds either half, and all
	// of it if it is short.
	most := int64(utf8.UTFMax * limit)
	head, err := o.bytes(offset, min(end, offset+most))
	if err != nil {
		return View{}, err
	}
	if end-offset <= most {
		if t := text.Block(string(head)); utf8.RuneCountInString(t) <= limit {
			return View{Text: t, Next: end}, nil
		}
	}
	tail, err := o.bytes(max(offset, end-most), end)
	if err != nil {
		return View{}, err
	}
	first, n := prefix(head, limit-limit/2)
	last, m := suffix(tail, limit/2)
	gap := gap{from: offset + int64(n), to: end - int64(m), path: st.Path}
	if gap.lines, err = o.newlines(gap.from, gap.to); err != nil {
		return View{}, err
	}
	return View{Text: first + gap.String() + last, Next: end}, nil
}

// wholeUntil returns the offset after the last whole character that was
// printed from offset on. Once the output has ended that is its end.
func (o *TaskOutput) wholeUntil(offset int64, st Stat) (int64, error) {
	if st.Ended {
		return st.Size, nil
	}
	last, err := o.bytes(max(offset, st.Size-utf8.UTFMax), st.Size)
	return st.Size - int64(partial(last)), err
}

// bytes reads what is known to be there.
func (o *TaskOutput) bytes(from, to int64) ([]byte, error) {
	p := make([]byte, to-from)
	n, err := o.ReadAt(p, from)
	return p[:n], err
}

// A gap is what a view leaves out.
type gap struct {
	from, to, lines int64
	path            string
}

func (g gap) String() string {
	s := fmt.Sprintf("\n[… %d bytes, %d lines left out from offset %d on", g.to-g.from, g.lines, g.from)
	if g.path != "" {
		s += "; all of it is in " + text.Line(g.path)
	}
	return s + " …]\n"
}

// partial returns the length of the character at the end of p of which bytes
// are still to come, or 0.
func partial(p []byte) int {
	for n := 1; n <= min(len(p), utf8.UTFMax-1); n++ {
		if c := p[len(p)-n:]; utf8.RuneStart(c[0]) {
			if utf8.FullRune(c) {
				return 0
			}
			return n
		}
	}
	return 0
}

// prefix returns the beginning of p as text of at most limit characters, and
// the number of bytes it stands for. It ends with a line where it can.
func prefix(p []byte, limit int) (string, int) {
	n, chars := 0, 0
	atLine, atChars := 0, 0
	for n < len(p) {
		_, size := utf8.DecodeRune(p[n:])
		t := text.Block(string(p[n : n+size]))
		if chars += utf8.RuneCountInString(t); chars > limit {
			break
		}
		if n += size; t == "\n" {
			atLine, atChars = n, chars
		}
	}
	if atChars >= limit/2 {
		n = atLine
	}
	return text.Block(string(p[:n])), n
}

// suffix returns the end of p as text of at most limit characters, and the
// number of bytes it stands for. It begins with a line where it can.
func suffix(p []byte, limit int) (string, int) {
	start, chars := len(p), 0
	atLine, atChars := len(p), 0
	for start > 0 {
		_, size := utf8.DecodeLastRune(p[:start])
		t := text.Block(string(p[start-size : start]))
		if t == "\n" && start < len(p) {
			atLine, atChars = start, chars
		}
		if chars += utf8.RuneCountInString(t); chars > limit {
			break
		}
		start -= size
	}
	if atChars >= limit/2 {
		start = atLine
	}
	return text.Block(string(p[start:])), len(p) - start
}
