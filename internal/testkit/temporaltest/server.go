// Package temporaltest starts a real Temporal server for tests.
//
// The server is the development server of Temporal's own command, with its
// database in a file. A nested module pins it. It is large: it takes six minutes
// of a processor and 2 GB of the build cache. So tests do not build it; make
// cluster-check does, and names the program in LEADETL_TEMPORAL.
package temporaltest

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Namespace is the namespace that a server has.
const Namespace = "leads"

// variable names the environment variable with the path of the program.
const variable = "LEADETL_TEMPORAL"

// Server is a server that can be killed and started again.
type Server struct {
	Address string // host and port
	File    string // its database

	program string
	process *exec.Cmd
	gone    chan struct{}
	said    bytes.Buffer
}

// Program returns the path of Temporal's command. Without it the test is skipped.
func Program(t testing.TB) string {
	t.Helper()
	program := os.Getenv(variable)
	if program == "" {
		t.Skip("needs a Temporal server: make cluster-check builds one and runs this test")
	}
	return program
}

// Start starts a server, which ends with the test. Without the program it skips
// the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{program: Program(t), Address: FreeAddress(t), File: filepath.Join(t.TempDir(), "temporal.db")}
	s.Up(t)
	t.Cleanup(s.Kill)
	return s
}

// URL is the address as --on takes it.
func (s *Server) URL() string { return "temporal://" + s.Address + "/" + Namespace }

// Up starts the server again, on the same address and database.
func (s *Server) Up(t testing.TB) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	s.said.Reset()
	s.process = exec.Command(s.program, "server", "start-dev", "--headless", "--ip", host, "--port", port, "--db-filename", s.File,
		"--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=2", "--namespace", Namespace, "--log-level", "error", "--disable-config-file")
	s.process.Env = append(os.Environ(), "HOME="+filepath.Dir(s.File), "DO_NOT_TRACK=1")
	s.process.Stdout, s.process.Stderr = &s.said, &s.said
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	process, gone := s.process, make(chan struct{})
	s.gone = gone
	go func() {
		defer close(gone)
		_ = process.Wait() // it is killed
	}()
	for end := time.Now().Add(2 * time.Minute); ; {
		if _, err := s.command("operator", "namespace", "describe"); err == nil {
			return
		}
		select {
		case <-gone:
			t.Fatalf("the Temporal server ended:\n%s", s.said.String())
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatal("the Temporal server does not listen")
		}
	}
}

// Kill kills the server.
func (s *Server) Kill() {
	_ = s.process.Process.Kill() // it may be gone
	<-s.gone
}

// History returns the history of a workflow as JSON.
func (s *Server) History(t testing.TB, workflow string) []byte {
	t.Helper()
	out, err := s.command("workflow", "show", "--workflow-id", workflow, "--output", "json", "--no-json-shorthand-payloads")
	if err != nil {
		t.Fatalf("history of %s: %v", workflow, err)
	}
	return out
}

// Workflows returns the ids of all workflows, one for each of their runs.
func (s *Server) Workflows(t testing.TB) (ids []string) {
	t.Helper()
	out, err := s.command("workflow", "list", "--output", "jsonl", "--limit", "100000")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if _, after, found := strings.Cut(line, `"workflowId":"`); found {
			id, _, _ := strings.Cut(after, `"`)
			ids = append(ids, id)
		}
	}
	return ids
}

// command runs a command of Temporal against the server.
func (s *Server) command(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, s.program, append(args, "--address", s.Address, "--namespace", Namespace, "--disable-config-file", "--color", "never")...)
	c.Env = append(os.Environ(), "HOME="+filepath.Dir(s.File))
	return c.Output()
}

// FreeAddress is a host and port on which no other process listens.
func FreeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
