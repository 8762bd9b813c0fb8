package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A timeline shows what happens while it happens, a line at a time. Whatever
// titles, commands and outputs contain, it is harmless on a terminal.
type timeline struct {
	w      io.Writer
	cancel context.CancelCauseFunc // called with the first error of w
	err    error                   // the first error of w; nothing is written after it
	start  time.Time
	turn   int // of the model, from 1
}

func newTimeline(w io.Writer, cancel context.CancelCauseFunc) *timeline {
	return &timeline{w: w, cancel: cancel, start: time.Now(), turn: 1}
}

// line shows that something happened now.
func (t *timeline) line(what, format string, args ...any) {
	t.print("%7.2fs  turn %-3d %-6s %s", time.Since(t.start).Seconds(), t.turn, what, fmt.Sprintf(format, args...))
}

// How much of a text a block shows.
const (
	headLines = 7 // at its beginning
	tailLines = 5 // at its end
	lineWidth = 120
)

// block shows a text of many lines below a line. The middle of a long one is
// left out.
func (t *timeline) block(s string) {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		switch left := len(lines) - headLines - tailLines; {
		case left <= 1, i < headLines, i >= headLines+left:
			t.print("          | %s", clip(strings.ReplaceAll(line, "\t", "    "), lineWidth))
		case i == headLines:
			t.print("          | (%d lines)", left)
		}
	}
}

// print writes one line, at once.
func (t *timeline) print(format string, args ...any) {
	if t.err != nil {
		return
	}
	if _, t.err = fmt.Fprintln(t.w, plain(fmt.Sprintf(format, args...))); t.err != nil {
		t.cancel(t.err)
	}
}

// plain returns s with whatever cannot be printed as it is written in Go: no
// text moves the cursor or begins another line.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// clip returns s if it has at most max characters, else its beginning and an
// ellipsis.
func clip(s string, max int) string {
	if fmt.Sprintf("%.*s", max, s) == s {
		return s
	}
	return fmt.Sprintf("%.*s…", max-1, s)
}
