//go:build !race

package shell_test

const slower = 1
