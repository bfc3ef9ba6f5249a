package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestStoppableReadsWhatThereIs(t *testing.T) {
	text := strings.Repeat("id,email\n", 30_000) // more than a block
	if err := iotest.TestReader(stoppable(t.Context(), strings.NewReader(text)), []byte(text)); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken pipe")
	_, err := io.ReadAll(stoppable(t.Context(), io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))))
	if !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

func TestStoppableReadsNothingUnasked(t *testing.T) {
	in := strings.NewReader("for somebody else")
	stoppable(t.Context(), in)
	if in.Len() != len("for somebody else") {
		t.Error("it was read")
	}
}

// waiting is standard input of which nothing comes. It cancels when somebody
// waits for it.
type waiting struct {
	cancel context.CancelFunc
	end    chan struct{}
}

func (w waiting) Read([]byte) (int, error) {
	w.cancel()
	<-w.end
	return 0, io.EOF
}

func TestInterruptedWhileWaitingForInput(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in := waiting{cancel, make(chan struct{})}
	defer close(in.end)
	var out, errOut bytes.Buffer
	args := []string{"run", "email_to_hem", "--in", "-", "--out", t.TempDir() + "/out", "--state", t.TempDir()}
	code := execute(ctx, args, in, &out, &errOut)
	if want := "leadetl: interrupted before anything was done\n"; code != exitInterrupted || errOut.String() != want || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %q; want %d, %q, nothing", code, &errOut, &out, exitInterrupted, want)
	}
}
