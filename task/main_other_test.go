//go:build !linux

package task_test

import (
	"testing"

	"github.com/afoot-go/afoot/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
