package task

import (
	"encoding/json"
	"strconv"
	"time"
)

// A journal gets a record at each step of each task. encoding/json takes several
// times as long for one as the write does, so records are encoded by hand; a test
// holds the result against encoding/json. They are decoded by that package alone.

// An encoder appends the fields of a JSON object.
type encoder struct{ b []byte }

func (e *encoder) key(name string) {
	if c := e.b[len(e.b)-1]; c != '{' {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
}

// string appends a field whose value is s.
func (e *encoder) string(name, s string) {
	e.key(name)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // no string fails
			e.b = append(e.b, quoted...)
			return
		}
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, s...)
	e.b = append(e.b, '"')
}

// The methods below leave a zero value out.

func (e *encoder) optString(name, s string) {
	if s != "" {
		e.string(name, s)
	}
}

func (e *encoder) optInt(name string, n int64) {
	if n != 0 {
		e.key(name)
		e.b = strconv.AppendInt(e.b, n, 10)
	}
}

func (e *encoder) optBool(name string, v bool) {
	if v {
		e.key(name)
		e.b = append(e.b, "true"...)
	}
}

func (e *encoder) optTime(name string, t time.Time) {
	if !t.IsZero() {
		e.key(name)
		e.b = append(e.b, '"')
		e.b = t.AppendFormat(e.b, time.RFC3339Nano)
		e.b = append(e.b, '"')
	}
}

func (r *journalRecord) appendJSON(b []byte) []byte {
	e := encoder{append(b, '{')}
	e.string("kind", r.Kind)
	e.string("id", string(r.ID))
	e.optTime("time", r.Time)
	e.optInt("rev", int64(r.Rev))
	if r.State != nil {
		e.key("state")
		e.b = r.State.appendJSON(e.b)
	}
	return append(e.b, '}')
}

// appendJSON appends what json.Marshal would return, but for Notified, which a
// journal has a record of its own for, and for output facts that are zero.
func (s *State) appendJSON(b []byte) []byte {
	e := encoder{append(b, '{')}
	e.string("id", string(s.ID))
	e.optInt("run", int64(s.Run))
	e.string("type", string(s.Type))
	e.string("status", s.Status.String())
	e.string("description", s.Description)
	e.optString("command", s.Command)
	e.optString("tool_use_id", s.ToolUseID)
	e.optString("owner", string(s.Owner))
	e.optTime("created", s.Created)
	e.optTime("started", s.Started)
	e.optTime("ended", s.Ended)
	e.optString("reason", string(s.Reason))
	e.optString("killed_by", string(s.KilledBy))
	if s.Exit != nil {
		e.key("exit")
		e.b = s.Exit.appendJSON(e.b)
	}
	e.optString("error", s.Error)
	e.optString("summary", s.Summary)
	e.optString("result", s.Result)
	e.optBool("stalled", s.Stalled)
	e.optBool("waiting_for_input", s.WaitingForInput)
	e.optBool("backgrounded", s.Backgrounded)
	if len(s.Descendants) > 0 {
		e.key("descendants")
		e.b = append(e.b, '[')
		for i, pid := range s.Descendants {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.b = strconv.AppendInt(e.b, int64(pid), 10)
		}
		e.b = append(e.b, ']')
	}
	e.optInt("output_size", s.OutputSize)
	e.optInt("output_dropped", s.OutputDropped)
	e.optString("output_error", s.OutputError)
	e.optString("output_file", s.OutputFile)
	e.optInt("output_told", s.OutputTold)
	if s.Priority != 0 {
		e.string("priority", s.Priority.String())
	}
	if len(s.Data) > 0 {
		e.key("data")
		e.b = append(e.b, s.Data...)
	}
	return append(e.b, '}')
}

func (x *Exit) appendJSON(b []byte) []byte {
	e := encoder{append(b, `{"code":`...)}
	e.b = strconv.AppendInt(e.b, int64(x.Code), 10)
	e.optString("signal", x.Signal)
	e.optBool("unknown", x.Unknown)
	return append(e.b, '}')
}
