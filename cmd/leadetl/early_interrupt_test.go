package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
)

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
	if want := "leadetl: interrupted before anything was done\n"; code != cli.ExitInterrupted || errOut.String() != want || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %q; want %d, %q, nothing", code, &errOut, &out, cli.ExitInterrupted, want)
	}
}
