//go:build race

package shell_test

// slower is by how much the race detector may slow down what has a time.
const slower = 5
