package notify_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/notify"
)

// When a notification is told follows from its source and status, and shows in
// whether a lease of Next takes it.
func TestPriorityRule(t *testing.T) {
	tests := []struct {
		name string
		n    notify.Notification
		want notify.Priority
	}{
		{"completed task", notify.Notification{Source: notify.BackgroundTask, Status: "completed"}, notify.Later},
		{"completed task without a source", notify.Notification{Status: "completed"}, notify.Later},
		{"failed task", notify.Notification{Source: notify.BackgroundTask, Status: "failed"}, notify.Next},
		{"killed task", notify.Notification{Source: notify.BackgroundTask, Status: "killed"}, notify.Next},
		{"stalled task", notify.Notification{Source: notify.BackgroundTask}, notify.Next},
		{"zero", notify.Notification{}, notify.Next},
		{"fire", notify.Notification{Source: notify.ScheduledTask}, notify.Next},
		{"completed fire", notify.Notification{Source: notify.ScheduledTask, Status: "completed"}, notify.Next},
		{"user action", notify.Notification{Source: notify.UserAction}, notify.Next},
		{"monitor line", notify.Notification{Source: notify.Monitor}, notify.Next},
		{"nudge from the plan", notify.Notification{Source: notify.Plan}, notify.Later},
		{"progress", notify.Notification{Source: notify.Progress}, notify.Later},
		{"unknown source", notify.Notification{Source: "doorbell"}, notify.Next},
		{"overruled to later", notify.Notification{Source: notify.UserAction, Priority: notify.Later}, notify.Later},
		{"overruled to next", notify.Notification{Source: notify.Plan, Priority: notify.Next}, notify.Next},
		{"negative", notify.Notification{Source: notify.Plan, Priority: -1}, notify.Next},
		{"beyond later", notify.Notification{Source: notify.UserAction, Priority: notify.Later + 1}, notify.Later},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var q notify.Queue
			q.Push(tt.n)
			got := notify.Next
			if q.Lease(notify.Next).Empty() {
				got = notify.Later
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestPriorityText(t *testing.T) {
	for p, want := range map[notify.Priority]string{0: "default", notify.Next: "next", notify.Later: "later"} {
		text, err := p.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.Equal(t, want, p.String())

		back := notify.Priority(99)
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, p, back)
	}
	_, err := notify.Priority(-1).MarshalText()
	require.EqualError(t, err, "notify: no such priority: -1")
	_, err = (notify.Later + 1).MarshalText()
	require.EqualError(t, err, "notify: no such priority: 3")
	require.Equal(t, "Priority(7)", notify.Priority(7).String())

	p := notify.Later
	require.EqualError(t, p.UnmarshalText([]byte("Priority(7)")), `notify: no such priority: "Priority(7)"`)
	require.Equal(t, notify.Later, p, "unchanged after an error")
}

func TestNotificationJSON(t *testing.T) {
	empty, err := json.Marshal(notify.Notification{Told: func() error { return nil }})
	require.NoError(t, err)
	require.Equal(t, "{}", string(empty), "zero fields and Told are left out")

	slot := time.Date(2026, 4, 22, 9, 0, 0, 0, time.UTC)
	n := notify.Notification{
		ID: "schedule_1@x", Source: notify.ScheduledTask, TaskID: "b1", ToolUseID: "toolu_01", Status: "failed",
		Summary: "s", Result: "r", OutputFile: "/o", EntryID: "schedule_1", Command: "c", Slot: slot, Late: time.Second,
		Missed: 1, Folded: 2, Priority: notify.Later, To: "a1", Time: slot,
	}
	text, err := json.Marshal(n)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"schedule_1@x","source":"scheduled_task","task_id":"b1","tool_use_id":"toolu_01",
		"status":"failed","summary":"s","result":"r","output_file":"/o","entry_id":"schedule_1","command":"c",
		"slot":"2026-04-22T09:00:00Z","late":1000000000,"missed":1,"folded":2,"priority":"later","to":"a1",
		"time":"2026-04-22T09:00:00Z"}`, string(text))

	var back notify.Notification
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, n, back)
}
