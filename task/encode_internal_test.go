package task

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
)

// Records are encoded by hand, which nobody outside sees: so these tests are
// inside. Whatever a state holds, it is read as encoding/json would have written it.

func TestRecordsAreWhatJSONWouldWrite(t *testing.T) {
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
	check := func(st State) {
		rec := journalRecord{Kind: recState, ID: st.ID, Time: st.Created, Rev: uint64(rnd.Int64N(1 << 60)), State: &st}
		want, err := json.Marshal(rec)
		require.NoError(t, err)
		got := rec.appendJSON(nil)
		var fromJSON, byHand journalRecord
		require.NoError(t, json.Unmarshal(want, &fromJSON))
		require.NoError(t, json.Unmarshal(got, &byHand), "%s", got)
		require.Equal(t, fromJSON, byHand)
	}
	for range 2_000 {
		var st State
		fill(&st, func() bool { return rnd.IntN(2) == 0 }, func() string {
			p := make([]byte, rnd.IntN(20))
			for i := range p {
				p[i] = byte(rnd.IntN(256))
			}
			return string(p)
		}, func() int64 { return rnd.Int64N(5) })
		check(st)
	}
	check(State{})
	check(State{Description: "\x00\xff\u2028<>&\"\\日", Exit: &Exit{Code: -1, Signal: "SIGKILL", Unknown: true}})
}

// A field that is added to State is thought of here too.
func TestEveryFieldIsRecorded(t *testing.T) {
	var st, back State
	fill(&st, func() bool { return true }, func() string { return "x" }, func() int64 { return 1 })
	for i, v := 0, reflect.ValueOf(st); i < v.NumField(); i++ {
		name := v.Type().Field(i).Name
		require.True(t, name == "Notified" || !v.Field(i).IsZero(), name)
	}
	require.NoError(t, json.Unmarshal(st.appendJSON(nil), &back))
	require.Equal(t, st, back)
}

// fill sets the fields of a state, each if set says so, but for Notified: that an
// end was told has a record of its own.
func fill(st *State, set func() bool, text func() string, number func() int64) {
	v := reflect.ValueOf(st).Elem()
	for i := range v.NumField() {
		if !set() || v.Type().Field(i).Name == "Notified" {
			continue
		}
		switch f := v.Field(i); f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(time.Unix(number(), number()).UTC()))
		case *Exit:
			f.Set(reflect.ValueOf(&Exit{Code: int(number()), Signal: text(), Unknown: set()}))
		case json.RawMessage:
			f.Set(reflect.ValueOf(json.RawMessage(`{"pid":1}`)))
		case []int:
			f.Set(reflect.ValueOf([]int{int(number()), 2}))
		case bool:
			f.SetBool(true)
		case notify.Priority:
			f.SetInt(1 + number()%2)
		case string, ID, Type, Owner, EndReason:
			f.SetString(text())
		default:
			f.SetInt(number())
		}
	}
}
