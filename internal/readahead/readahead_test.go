package readahead

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBlocks(t *testing.T) {
	errDisk := errors.New("disk")
	text := "0123456789"
	tests := []struct {
		name string
		src  io.Reader
		want string
		err  error
	}{
		{"whole", strings.NewReader(text), "0123|4567|89|", io.EOF},
		{"byte by byte", iotest.OneByteReader(strings.NewReader(text)), "0123|4567|89|", io.EOF},
		{"the end comes with data", iotest.DataErrReader(strings.NewReader(text)), "0123|4567|89|", io.EOF},
		{"nothing", strings.NewReader(""), "", io.EOF},
		{"an error after data", io.MultiReader(strings.NewReader("01234"), iotest.ErrReader(errDisk)), "0123|4|", errDisk},
		{"a stream that was cut", io.MultiReader(strings.NewReader("01234"), iotest.ErrReader(io.ErrUnexpectedEOF)), "0123|4|", io.ErrUnexpectedEOF},
		{"a reader that never reads", idle{}, "", io.ErrNoProgress},
	}
	for _, test := range tests {
		r := New(test.src, 4, 3)
		got, err := "", error(nil)
		for {
			var b []byte
			if b, err = r.Next(context.Background()); err != nil {
				break
			}
			copy(b[:r.Head()], "xxx") // the headroom is ours
			got += string(b[r.Head():]) + "|"
			r.Recycle(b)
		}
		r.Close()
		if got != test.want || err != test.err {
			t.Errorf("%s: %q, %v, want %q, %v", test.name, got, err, test.want, test.err)
		}
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// However much is left to read, Close ends the goroutine, and buffers are no
// more than were asked for.
func TestCloseInTheMiddle(t *testing.T) {
	endless := iotest.OneByteReader(neverending{})
	r := New(endless, 16, 0)
	if b, err := r.Next(context.Background()); err != nil || !bytes.Equal(b, make([]byte, 16)) {
		t.Errorf("%q, %v", b, err)
	}
	r.Close()
	r.Close() // twice does no harm
}

type neverending struct{}

func (neverending) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestNextCanBeCancelled(t *testing.T) {
	src, writer := io.Pipe()
	r := New(src, 16, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Next(ctx); err != context.Canceled {
		t.Errorf("%v", err)
	}
	writer.Close()
	r.Close()
}
