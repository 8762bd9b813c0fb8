//go:build unix

package output_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/output"
)

// What it costs to keep what a command prints, beside the shell's own redirect
// of the same into a file. cpu-ns/op is the CPU of this process and its children.
func BenchmarkCapture(b *testing.B) {
	const size = 64 << 20
	for name, script := range map[string]string{
		"lines": "yes 0123456789012345678901234567890123456789012345678901234567890123456789012345678 | head -c 67108864",
		"zeros": "head -c 67108864 /dev/zero",
	} {
		b.Run(name+"/ours", func(b *testing.B) {
			measure(b, func() {
				var o output.TaskOutput
				capture(b, &o, script)
				require.EqualValues(b, size, o.Stat().Size)
				require.NoError(b, o.Close())
			})
		})
		b.Run(name+"/redirect", func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "out")
			measure(b, func() {
				require.NoError(b, exec.Command("/bin/sh", "-c", script+" >"+file).Run())
				require.NoError(b, os.Remove(file))
			})
		})
	}
}

func capture(b *testing.B, o *output.TaskOutput, script string) {
	r, w, err := os.Pipe()
	require.NoError(b, err)
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout = w
	require.NoError(b, cmd.Start())
	require.NoError(b, w.Close())
	_, err = o.ReadFrom(r)
	require.NoError(b, err)
	require.NoError(b, r.Close())
	require.NoError(b, cmd.Wait())
}

// measure runs f and reports the CPU that it took, children included.
func measure(b *testing.B, f func()) {
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpu(b *testing.B) int64 {
	var self, children syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &self))
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children))
	return self.Utime.Nano() + self.Stime.Nano() + children.Utime.Nano() + children.Stime.Nano()
}
