package notify

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/afoot-go/afoot/internal/text"
)

const envelope = "task_notification"

// Text returns n as one XML element, for a model to read. Elements without a
// value are left out, and so is the source if it is [BackgroundTask]; ID,
// Priority, To and Time are never written. [Parse] reads it back.
//
// Nothing that a field contains can end its element or begin another: &, < and
// > are escaped, and what a reader would not see, such as control characters
// and changes of the writing direction, is made visible. So is a newline,
// except in Result.
func (n Notification) Text() string { return string(appendEnvelope(nil, &n)) }

func appendEnvelope(b []byte, n *Notification) []byte {
	b = append(b, "<"+envelope+">\n"...)
	for _, e := range elements {
		value := e.get(n)
		if value == "" {
			continue
		}
		b = append(b, '<')
		b = append(b, e.name...)
		b = append(b, '>')
		b = appendEscaped(b, e.clean(value))
		b = append(b, "</"...)
		b = append(b, e.name...)
		b = append(b, ">\n"...)
	}
	return append(b, "</"+envelope+">"...)
}

// appendEscaped appends s to b with each &, < and > escaped.
func appendEscaped(b []byte, s string) []byte {
	for {
		i := strings.IndexAny(s, "&<>")
		if i < 0 {
			return append(b, s...)
		}
		b = append(b, s[:i]...)
		switch s[i] {
		case '&':
			b = append(b, "&amp;"...)
		case '<':
			b = append(b, "&lt;"...)
		case '>':
			b = append(b, "&gt;"...)
		}
		s = s[i+1:]
	}
}

// An element is one line of an envelope.
type element struct {
	name  string
	clean func(string) string        // what makes a value harmless
	get   func(*Notification) string // "" if there is no value
	set   func(*Notification, string) error
}

// elements are those of an envelope, in the order in which they are written.
var elements = []element{
	field("task_id", func(n *Notification) *string { return &n.TaskID }),
	field("tool_use_id", func(n *Notification) *string { return &n.ToolUseID }),
	field("output_file", func(n *Notification) *string { return &n.OutputFile }),
	field("status", func(n *Notification) *string { return &n.Status }),
	{"source", text.Line, getSource, setSource},
	field("entry_id", func(n *Notification) *string { return &n.EntryID }),
	field("command", func(n *Notification) *string { return &n.Command }),
	{"slot", text.Line, getSlot, setSlot},
	{"late", text.Line, getLate, setLate},
	count("missed", func(n *Notification) *int { return &n.Missed }),
	count("folded", func(n *Notification) *int { return &n.Folded }),
	field("summary", func(n *Notification) *string { return &n.Summary }),
	block("result", func(n *Notification) *string { return &n.Result }),
}

// field returns the element of a text of one line.
func field(name string, of func(*Notification) *string) element {
	return element{
		name:  name,
		clean: text.Line,
		get:   func(n *Notification) string { return *of(n) },
		set:   func(n *Notification, s string) error { *of(n) = s; return nil },
	}
}

// block returns the element of a text of many lines.
func block(name string, of func(*Notification) *string) element {
	e := field(name, of)
	e.clean = text.Block
	return e
}

// count returns the element of a number that is left out if zero.
func count(name string, of func(*Notification) *int) element {
	return element{
		name:  name,
		clean: text.Line,
		get: func(n *Notification) string {
			if *of(n) == 0 {
				return ""
			}
			return strconv.Itoa(*of(n))
		},
		set: func(n *Notification, s string) (err error) {
			*of(n), err = strconv.Atoi(s)
			return err
		},
	}
}

func getSource(n *Notification) string {
	if n.Source == BackgroundTask {
		return ""
	}
	return string(n.Source)
}

func setSource(n *Notification, s string) error {
	n.Source = Source(s)
	return nil
}

func getSlot(n *Notification) string {
	if n.Slot.IsZero() {
		return ""
	}
	b, _ := n.Slot.MarshalText() // nothing for a year that RFC 3339 does not have
	return string(b)
}

func setSlot(n *Notification, s string) (err error) {
	n.Slot, err = time.Parse(time.RFC3339Nano, s)
	return err
}

func getLate(n *Notification) string {
	if n.Late == 0 {
		return ""
	}
	return n.Late.String()
}

func setLate(n *Notification, s string) (err error) {
	n.Late, err = time.ParseDuration(s)
	return err
}

// A ParseError says where a text stops being what [Notification.Text] writes.
type ParseError struct {
	Line   int   // counted from 1
	Offset int   // in bytes, from the beginning of the text
	Err    error // what is wrong there
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("notify: line %d (byte %d): %v", e.Line, e.Offset, e.Err)
}

func (e *ParseError) Unwrap() error { return e.Err }

// Parse reads what [Notification.Text] or [Lease.Text] wrote. It gives the
// values as they were shown, escapes of invisible characters included, and
// none of what is not written. A text of white space alone holds no
// notifications.
//
// Parse is strict: only white space may stand between elements, those of a
// notification come in the order in which they are written, each at most once,
// and no text has a character that Text would have escaped. Anything else
// gives a [*ParseError] and no notifications.
func Parse(text string) ([]Notification, error) {
	p := &parser{all: text, rest: text}
	var ns []Notification
	for p.space(); p.rest != ""; p.space() {
		n, err := p.notification()
		if err != nil {
			return nil, p.locate(err)
		}
		ns = append(ns, n)
	}
	return ns, nil
}

// A parser stands at the beginning of rest, the end of all.
type parser struct{ all, rest string }

// locate returns err as a ParseError at the place where the parser stands.
func (p *parser) locate(err error) *ParseError {
	read := p.all[:len(p.all)-len(p.rest)]
	return &ParseError{Line: 1 + strings.Count(read, "\n"), Offset: len(read), Err: err}
}

func (p *parser) notification() (Notification, error) {
	n := Notification{Source: BackgroundTask}
	if !p.skip("<" + envelope + ">") {
		return n, errors.New("want <" + envelope + ">")
	}
	next := 0 // of elements, the first that may still come
	for p.space(); !p.skip("</" + envelope + ">"); p.space() {
		i, err := p.element(next, &n)
		if err != nil {
			return n, err
		}
		next = i + 1
	}
	return n, nil
}

// element reads one element, which must be elements[next] or a later one, into
// n and returns its index.
func (p *parser) element(next int, n *Notification) (int, error) {
	for i := next; i < len(elements); i++ {
		e := &elements[i]
		if !strings.HasPrefix(p.rest, "<"+e.name+">") {
			continue
		}
		value, err := p.value(e)
		if err != nil {
			return 0, err
		}
		if err := e.set(n, value); err != nil {
			return 0, fmt.Errorf("bad %s: %w", e.name, err)
		}
		p.skip("</" + e.name + ">")
		return i, nil
	}
	return 0, errors.New("want </" + envelope + "> or an element that may follow")
}

// value reads the opening tag and the text of e and stops at its closing tag.
func (p *parser) value(e *element) (string, error) {
	p.skip("<" + e.name + ">")
	raw, after, _ := strings.Cut(p.rest, "<")
	if !strings.HasPrefix("<"+after, "</"+e.name+">") {
		return "", errors.New("want text and </" + e.name + ">")
	}
	value, ok := unescape(raw)
	switch {
	case !ok:
		return "", errors.New("want &, < and > as &amp;, &lt; and &gt;")
	case e.clean(value) != value:
		return "", errors.New("want no control characters")
	}
	p.rest = p.rest[len(raw):]
	return value, nil
}

// skip passes over want if it comes next and reports whether it did.
func (p *parser) skip(want string) bool {
	rest, ok := strings.CutPrefix(p.rest, want)
	p.rest = rest
	return ok
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// unescape undoes appendEscaped. It reports false for a text that has not gone
// through it.
func unescape(s string) (string, bool) {
	value := unescaper.Replace(s)
	return value, string(appendEscaped(nil, value)) == s
}

var unescaper = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")
