package record_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/leak"
	"github.com/afoot-go/afoot/internal/record"
)

func TestMain(m *testing.M) { leak.Main(m) }

func logOf(records ...string) (log []byte) {
	for _, r := range records {
		log = record.Append(log, []byte(r))
	}
	return log
}

func TestRoundTrip(t *testing.T) {
	want := []string{"one", "", strings.Repeat("x", 100_000), "\x00\xff"}
	log := logOf(want...)
	got, end, err := record.Split(log)
	require.NoError(t, err)
	require.Equal(t, len(log), end)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], string(got[i]))
	}
	got, end, err = record.Split(nil)
	require.NoError(t, err)
	require.Zero(t, end)
	require.Empty(t, got)
}

// Wherever a write is cut short, what was whole before it is read, and no more.
func TestTornTail(t *testing.T) {
	whole := logOf("one", "two")
	log := record.Append(bytes.Clone(whole), []byte("three"))
	for cut := len(whole); cut < len(log); cut++ {
		got, end, err := record.Split(log[:cut])
		require.NoError(t, err, "cut at %d", cut)
		require.Equal(t, len(whole), end)
		require.Len(t, got, 2)
	}
}

// A log that goes on after a wrong record was not cut short: it is not read as
// if it ended there.
func TestCorrupt(t *testing.T) {
	log := logOf("one", "two", "three")
	first := len(logOf("one"))
	for at := first; at < len(logOf("one", "two")); at++ {
		bad := bytes.Clone(log)
		bad[at] ^= 1
		got, end, err := record.Split(bad)
		require.Equal(t, "one", string(got[0]))
		require.Equal(t, first, end)
		require.ErrorIs(t, err, record.ErrCorrupt)
		require.ErrorContains(t, err, fmt.Sprint("offset ", first))
	}
	for name, tail := range map[string][]byte{
		"zeros":       make([]byte, 100),
		"huge length": bytes.Repeat([]byte{0xff}, 100),
	} {
		got, _, err := record.Split(append(logOf("one"), tail...))
		require.ErrorIs(t, err, record.ErrCorrupt, name)
		require.Len(t, got, 1)
	}
}

func TestTooLarge(t *testing.T) {
	require.Panics(t, func() { record.Append(nil, make([]byte, record.Max+1)) })
	require.NotPanics(t, func() { record.Append(nil, make([]byte, record.Max)) })
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte{})
	f.Add(logOf("one", "", "three"))
	f.Add(make([]byte, 20))
	f.Fuzz(func(t *testing.T, log []byte) {
		records, end, err := record.Split(log)
		var again []byte
		for _, r := range records {
			again = record.Append(again, r)
		}
		require.Equal(t, log[:end:end], append([]byte{}, again...))
		if err == nil {
			require.Less(t, len(log)-end, 8+record.Max)
		}
	})
}
