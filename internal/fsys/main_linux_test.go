package fsys_test

import (
	"os"
	"testing"

	"github.com/afoot-go/afoot/internal/leak"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(conduct); name != "" {
		act(name, os.Getenv("DIR"))
		return
	}
	leak.Main(m)
}
