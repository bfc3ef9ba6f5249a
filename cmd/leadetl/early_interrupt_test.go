//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
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
	code := program.Execute(ctx, args, in, &out, &errOut)
	if want := "leadetl: interrupted before anything was done\n"; code != cli.ExitInterrupted || errOut.String() != want || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %q; want %d, %q, nothing", code, &errOut, &out, cli.ExitInterrupted, want)
	}
}

// A pipe without a writer is waited for until the first interrupt.
func TestInterruptedWhileWaitingForAFile(t *testing.T) {
	dir := t.TempDir()
	const pipe = "PIPE"
	list := filepath.Join(dir, "list.csv")
	if err := os.WriteFile(list, []byte("email\na@example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	remote := func(more ...string) []string {
		return append([]string{"run", "enrichment", "--in", list, "--out", dir + "/out", "--state", dir + "/state", "--resolver", "http://127.0.0.1:1"}, more...)
	}
	serve := func(more ...string) []string {
		return append([]string{"serve", "--directory", "none", "--state", dir + "/served", "--listen", "127.0.0.1:0", "--internal-listen", "none"}, more...)
	}
	t.Setenv("LEADETL_API_KEY", "")
	for i, args := range [][]string{
		{"run", "--job", pipe}, {"plan", "--job", pipe}, {"doctor", "--job", pipe}, {"serve", "--config", pipe},
		remote("--api-key-file", pipe),
		serve("--tls-cert", pipe, "--tls-key", pipe), serve("--system-key-file", pipe), serve("--jwt-jwks", pipe, "--jwt-issuer", "https://issuer.example", "--jwt-audience", "leads"),
		serve("--pepper-file", pipe),
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		file := fmt.Sprintf("%s/pipe%d", dir, i)
		if err := syscall.Mkfifo(file, 0o600); err != nil {
			t.Fatal(err)
		}
		for n := range args {
			args[n] = strings.ReplaceAll(args[n], pipe, file)
		}
		go interruptReader(t, file, interrupt)
		var out, errOut bytes.Buffer
		if code := program.Execute(ctx, args, strings.NewReader(""), &out, &errOut); code != cli.ExitInterrupted || !strings.Contains(errOut.String()+out.String(), "interrupted") {
			t.Errorf("%s: exit code %d, %q, %q; want %d", args, code, &errOut, &out, cli.ExitInterrupted)
		}
	}
}

// interruptReader interrupts when somebody waits for what is written to a pipe.
func interruptReader(t *testing.T, pipe string, interrupt func()) {
	for t.Context().Err() == nil {
		f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0) // an error without a reader
		if err == nil {
			interrupt()
			<-t.Context().Done()
			f.Close()
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// SIGQUIT ends the program at once and without a trace, unless one is asked for.
func TestQuit(t *testing.T) {
	for _, c := range []struct {
		debug string
		code  int
		trace bool
	}{{"", program.ExitQuit, false}, {"1", program.ExitQuit, true}} {
		t.Setenv(program.DebugVariable, c.debug)
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		p := clitest.StartProgram(t, "run", "email_to_hem", "--in", pipe, "--out", t.TempDir()+"/out", "--state", t.TempDir())
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the program reads
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := p.Process.Signal(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		if code, said := p.Code(), p.Said.String(); code != c.code || strings.Contains(said, "goroutine ") != c.trace || !c.trace && said != "" {
			t.Errorf("%s=%s: exit code %d, %.200q; want %d", program.DebugVariable, c.debug, code, said, c.code)
		}
	}
}
