package task_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
	"github.com/afoot-go/afoot/task"
	"github.com/afoot-go/afoot/task/tasktest"
)

func TestLatchIsClaimedOnce(t *testing.T) {
	var base task.StateBase
	require.False(t, base.State().Notified)
	var claimed atomic.Int32
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			if base.ClaimNotification() {
				claimed.Add(1)
			}
		})
	}
	callers.Wait()
	require.EqualValues(t, 1, claimed.Load())
	require.True(t, base.State().Notified)
	require.False(t, base.ClaimNotification())
}

// hostTask is a host's own type, with the state embedded.
type hostTask struct {
	task.StateBase
	killed atomic.Int32
}

func (h *hostTask) Kill(context.Context) error { h.killed.Add(1); return nil }

func TestStateBaseInAHostsType(t *testing.T) {
	tasks, inbox := tasktest.Open(t)
	h, err := tasks.Register(t.Context(), task.Spec{Type: "host_own", Description: "mine"})
	require.NoError(t, err)
	own := new(hostTask)
	require.NoError(t, h.Start(own))
	require.Equal(t, h.State(), own.State())
	require.Equal(t, task.Running, own.State().Status)

	h.Output().Write([]byte("x"))
	require.EqualValues(t, 1, own.State().OutputSize)

	// Who claims by hand announces by hand.
	require.True(t, own.ClaimNotification())
	require.False(t, h.ClaimNotification())
	require.NoError(t, h.Finish(task.Result{Status: task.Completed}))
	require.Equal(t, task.Completed, own.State().Status)
	require.True(t, inbox.Lease(notify.Later).Empty())
	require.True(t, tasks.Idle(task.Root), "announced by hand counts as told")

	other, err := tasks.Register(t.Context(), task.Spec{})
	require.NoError(t, err)
	require.Error(t, other.Start(own), "a StateBase serves one run")
	require.NoError(t, other.Kill(t.Context()))
	_, err = other.Take(t.Context())
	require.NoError(t, err)
}

func TestStateIsAPlainValue(t *testing.T) {
	tasks, _ := tasktest.Open(t)
	f := tasktest.NewFake(t, tasks, task.Spec{Type: task.LocalBash, Description: "build", Data: json.RawMessage(`{"pid":1}`)})
	f.End(task.Result{Status: task.Failed, Exit: &task.Exit{Code: 3}, Descendants: []int{7}})

	st := f.State()
	b, err := json.Marshal(st)
	require.NoError(t, err)
	require.Contains(t, string(b), `"status":"failed"`)
	require.Contains(t, string(b), `"exit":{"code":3}`)
	require.Contains(t, string(b), `"data":{"pid":1}`)
	var back task.State
	require.NoError(t, json.Unmarshal(b, &back))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(b), string(again))

	st.Exit.Code, st.Descendants[0], st.Data[1] = 0, 0, 'x'
	require.Equal(t, 3, f.State().Exit.Code, "changing a State changes nothing else")
	require.Equal(t, []int{7}, f.State().Descendants)
	require.JSONEq(t, `{"pid":1}`, string(f.State().Data))

	require.NoError(t, f.Kill(t.Context()), "ends what is left")
	_, err = f.Take(t.Context())
	require.NoError(t, err)
}

func TestName(t *testing.T) {
	long := strings.Repeat("x", 121)
	for _, tt := range []struct{ command, description, want string }{
		{"make", "compile", "make"},
		{"", "compile", "compile"},
		{long, "compile", "compile"},
		{long[:120], "compile", long[:120]},
		{"a\nb", "two lines", "two lines"},
		{long, long, long[:119] + "…"},
	} {
		require.Equal(t, tt.want, task.State{Command: tt.command, Description: tt.description}.Name())
	}
}
