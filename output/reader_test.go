package output_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/afoot-go/afoot/output"
)

func TestBad81Offsets(t *testing.T) {
	o := open(t, output.Config{})
	write(t, o, "0123456789")
	for _, tt := range []struct {
		off   int64
		limit int
		want  string
		next  int64
		err   error
	}{
		{0, 4, "0123", 4, nil},
		{4, 0, "456789", 10, nil},
		{4, -1, "456789", 10, nil},
		{4, math.MaxInt, "456789", 10, nil},
		{10, 4, "", 10, nil},
		{1 << 62, 4, "", 1 << 62, nil},
		{-1, 4, "", -1, output.ErrOffset},
		{math.MinInt64, 0, "", math.MinInt64, output.ErrOffset},
	} {
		c, err := o.Since(tt.off, tt.limit)
		require.ErrorIs(t, err, tt.err)
		require.Equal(t, tt.want, string(c.Bytes), "Since(%d, %d)", tt.off, tt.limit)
		require.Equal(t, tt.next, c.Next)
		_, err = o.View(tt.off, tt.limit)
		require.ErrorIs(t, err, tt.err, "View(%d, %d)", tt.off, tt.limit)
	}
	_, err := o.ReadAt(make([]byte, 1), -1)
	require.ErrorIs(t, err, output.ErrOffset)
	n, err := o.ReadAt(make([]byte, 1), 1<<62)
	require.Zero(t, n)
	require.Equal(t, io.EOF, err)
	_, err = io.ReadAll(o.Follow(t.Context(), -1))
	require.ErrorIs(t, err, output.ErrOffset)
}

func TestSinceIsBounded(t *testing.T) {
	o := open(t, output.Config{Limit: 3 << 20})
	write(t, o, strings.Repeat("x", 3<<20)+"dropped")
	c, err := o.Since(0, 1<<30)
	require.NoError(t, err)
	require.Len(t, c.Bytes, output.MaxSince)
	require.EqualValues(t, 7, c.Dropped)
}

func TestTail(t *testing.T) {
	o := open(t, output.Config{})
	for _, tt := range []struct {
		n    int
		want string
	}{{4, "6789"}, {10, "0123456789"}, {1 << 40, "0123456789"}, {0, ""}, {-1, ""}} {
		c, err := o.Tail(tt.n)
		require.NoError(t, err)
		require.Empty(t, c.Bytes, "of nothing")
		if o.Stat().Size == 0 {
			write(t, o, "0123456789")
		}
		c, err = o.Tail(tt.n)
		require.NoError(t, err)
		require.Equal(t, tt.want, string(c.Bytes), "Tail(%d)", tt.n)
		require.EqualValues(t, 10, c.Next)
		o = open(t, output.Config{})
	}
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, output.Config{})
		write(t, o, "skipped, early ")
		go func() {
			for i := range 3 {
				time.Sleep(time.Hour)
				fmt.Fprint(o, i)
			}
			time.Sleep(time.Hour)
			o.End()
		}()
		began := time.Now()
		got, err := io.ReadAll(o.Follow(t.Context(), 9))
		require.NoError(t, err)
		require.Equal(t, "early 012", string(got))
		require.Equal(t, 4*time.Hour, time.Since(began))

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		got, err = io.ReadAll(o.Follow(ended, 0))
		require.NoError(t, err, "what is there wins over the end of the context, and so does the end")
		require.Len(t, got, 18)
		n, err := o.Follow(ended, 0).Read(nil)
		require.Zero(t, n)
		require.NoError(t, err)
	})
}

func TestFollowStopsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, output.Config{})
		write(t, o, "x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := io.ReadAll(o.Follow(ctx, 0))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "x", string(got))
		ahead := o.Follow(t.Context(), 5)
		go func() { time.Sleep(time.Second); write(t, o, "123456789"); o.End() }()
		got, err = io.ReadAll(ahead)
		require.NoError(t, err)
		require.Equal(t, "56789", string(got), "an offset ahead of the end is waited for")
	})
}

func TestMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, output.Config{})
		open := func(c <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-c:
				return false
			default:
				return true
			}
		}
		first := o.More(0)
		require.True(t, open(first))
		write(t, o, "x")
		require.False(t, open(first))
		require.False(t, open(o.More(0)))
		second := o.More(1)
		require.True(t, open(second))
		o.End()
		require.False(t, open(second))
		require.False(t, open(o.More(1)))
	})
}

func ExampleTaskOutput_Since() {
	var o output.TaskOutput
	defer o.Close()
	fmt.Fprint(&o, "one\n")
	c, _ := o.Since(0, 0)
	fmt.Printf("%q\n", c.Bytes)
	fmt.Fprint(&o, "two\n")
	c, _ = o.Since(c.Next, 0)
	fmt.Printf("%q\n", c.Bytes)
	// Output:
	// "one\n"
	// "two\n"
}

func ExampleTaskOutput_Follow() {
	var o output.TaskOutput
	defer o.Close()
	go func() {
		fmt.Fprintln(&o, "building")
		fmt.Fprintln(&o, "built")
		o.End()
	}()
	io.Copy(os.Stdout, o.Follow(context.Background(), 0))
	// Output:
	// building
	// built
}
