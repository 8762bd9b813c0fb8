package task

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/internal/fsys"
)

// An append beside the bare write that it ends in. Inside the package because a
// journal is nothing that anybody else sees.
func BenchmarkAppend(b *testing.B) {
	dir, err := fsys.OpenDir(b.TempDir())
	require.NoError(b, err)
	defer dir.Close()
	st := State{
		ID: NewID(LocalBash), Run: 1, Type: LocalBash, Status: Running, Description: "install dependencies", Command: "npm install",
		ToolUseID: "toolu_01", Created: time.Now(), Started: time.Now(), Data: []byte(`{"pid":4711,"boot":"x","start":1,"inode":2}`),
	}
	b.Run("journal", func(b *testing.B) {
		j, _, err := openJournal(dir)
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, j.append(journalRecord{Kind: recState, ID: st.ID, Time: st.Created, Rev: 1, State: &st}))
		}
		b.SetBytes(j.size / int64(b.N))
		require.NoError(b, j.close())
	})
	b.Run("write", func(b *testing.B) {
		f, err := dir.Create(rand.Text())
		require.NoError(b, err)
		defer f.Close()
		p, off := make([]byte, 500), int64(0)
		for b.Loop() {
			_, err := f.WriteAt(p, off)
			require.NoError(b, err)
			off += int64(len(p))
		}
	})
}
