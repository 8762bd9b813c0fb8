//go:build !linux

package proc

import "time"

// An Identity is a pid alone: this system does not tell one process from a later
// one of the same number.
type Identity struct {
	PID   int    `json:"pid"`
	Boot  string `json:"boot,omitzero"`
	Start uint64 `json:"start,omitzero"`
	Inode uint64 `json:"inode,omitzero"`
}

// EndLost does nothing: a process cannot be known for sure on this system.
func EndLost(Identity, string, time.Duration) (survivors []int) { return nil }

// Marked returns nil: the environment of a process cannot be read on this system.
func Marked(string) map[string][]int { return nil }
