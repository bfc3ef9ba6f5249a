//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// SIGQUIT ends the program at once and without a trace, unless one is asked for.
func TestQuit(t *testing.T) {
	for _, c := range []struct {
		debug string
		code  int
		trace bool
	}{{"", exitQuit, false}, {"1", cli.ExitUsage, true}} {
		t.Setenv(debugVariable, c.debug)
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		p := startProgram(t, "run", "email_to_hem", "--in", pipe, "--out", t.TempDir()+"/out", "--state", t.TempDir())
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the program reads
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := p.Process.Signal(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		if code, said := p.code(), p.said.String(); code != c.code || strings.Contains(said, "goroutine ") != c.trace || !c.trace && said != "" {
			t.Errorf("%s=%s: exit code %d, %.200q; want %d", debugVariable, c.debug, code, said, c.code)
		}
	}
}
