package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/filelock"
)

// TestScripts tells the program's stories: each script is one, with its
// files, commands, exit codes and what is printed. A script finds the sample
// data under testdata, as the README does.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 clitest.Samples + "/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", clitest.Hasty)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			return copySamples(filepath.Join(e.WorkDir, "testdata"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":      code,
			"printed":   printed,
			"found":     found,
			"hold":      hold,
			"interrupt": interrupt,
		},
	})
}

// copySamples copies the sample data, without what only tests use.
func copySamples(to string) error {
	return filepath.WalkDir(clitest.Samples, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(clitest.Samples, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"script", "golden", "schema"}, d.Name()) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o644)
	})
}

// code runs a command that has to end with a certain exit code:
//
//	code 2 leadetl run
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program [args…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if err := ts.Exec(args[1], args[2:]...); exitCodeOf(err) != want {
		ts.Fatalf("exit code is %d, not %d", exitCodeOf(err), want)
	}
}

// exitCodeOf is what a process ended with, -1 when it did not run.
func exitCodeOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// printed compares what the last command printed with a file, but for times
// and sizes:
//
//	printed stdout want.txt
func printed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: printed stdout|stderr FILE")
	}
	if got, want := settled(ts.ReadFile(args[0])), settled(ts.ReadFile(args[1])); got != want {
		ts.Fatalf("%s is\n%s\nnot\n%s", args[0], got, want)
	}
}

var (
	speeds = regexp.MustCompile(`(?m)^(  took +)[0-9.]+[a-zµ]+(, [0-9,]+ rows/s)?$`)
	times  = regexp.MustCompile(` +[0-9.]+(ms|s) +from`)
	waits  = regexp.MustCompile(`(?m)^  (latency|waited) .*\n`)
	sizes  = regexp.MustCompile(`(?m)[0-9.]+ [kMGTP]?B$`)
	ids    = regexp.MustCompile(`\b(org|key|msg|res|req)_[0-9a-f]{16,32}|\bwhsec_[0-9A-Za-z+/]{43}=|…[0-9A-Za-z]{4}\b`)
	ends   = regexp.MustCompile(`(?m) +$`)
	dates  = regexp.MustCompile(`\b20[0-9-]{6,8}T[0-9:.]+Z\b`)
)

// settled is a program's output without what differs from run to run (how
// long things took, moments, ids) and from one encoder to the next (how many bytes).
func settled(s string) string {
	s = speeds.ReplaceAllString(s, "${1}T")
	s = times.ReplaceAllString(s, "   T   from")
	s = waits.ReplaceAllString(s, "")
	s = ids.ReplaceAllString(s, "ID")
	s = dates.ReplaceAllString(s, "NOW")
	s = ends.ReplaceAllString(s, "")
	return strings.TrimSuffix(sizes.ReplaceAllString(s, "N kB"), "\n")
}

// found looks for a text in files, whatever its case, and in every file of
// folders, hidden ones included:
//
//	! found jane@ out stderr
func found(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] found TEXT FILE|FOLDER…")
	}
	text, where := bytes.ToLower([]byte(args[0])), ""
	for _, arg := range args[1:] {
		if arg == "stdout" || arg == "stderr" {
			if bytes.Contains(bytes.ToLower([]byte(ts.ReadFile(arg))), text) {
				where = arg
			}
			continue
		}
		ts.Check(filepath.WalkDir(ts.MkAbs(arg), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(bytes.ToLower(data), text) {
				where = path
			}
			return err
		}))
	}
	switch {
	case neg && where != "":
		ts.Fatalf("%q is in %s", args[0], where)
	case !neg && where == "":
		ts.Fatalf("%q is nowhere", args[0])
	}
}

// hold keeps a folder in use until the script ends, as another process would:
//
//	hold out
func hold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold FOLDER")
	}
	lock, err := filelock.Folder(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(func() { ts.Check(lock.Release()) })
}

// interrupt runs a command on an endless standard input that begins with
// FILE, sends it a signal like that of Ctrl-C as soon as it has logged TEXT,
// and keeps what it says afterwards as the file "said":
//
//	interrupt rows.csv 'part published' leadetl run email_to_hem --in - …
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt FILE TEXT program [args…]")
	}
	program, err := exec.LookPath(args[2])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // for a program that does not stop
	defer cancel()
	c := exec.CommandContext(ctx, program, args[3:]...)
	c.Dir = ts.Getenv("WORK")
	c.Env = append(os.Environ(), "GORACE="+clitest.Hasty, "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"))
	in, err := c.StdinPipe()
	ts.Check(err)
	said := &signalAt{text: args[1], process: func() *os.Process { return c.Process }}
	c.Stderr = said
	ts.Check(c.Start())
	if _, err := io.WriteString(in, ts.ReadFile(args[0])); err != nil && !errors.Is(err, syscall.EPIPE) {
		ts.Fatalf("%v", err)
	}
	err = c.Wait() // in stays open: only the signal ends the program
	if !said.sent {
		ts.Fatalf("%q was never logged:\n%s", args[1], said.all.String())
	}
	if exitCodeOf(err) != cli.ExitInterrupted {
		ts.Fatalf("exit code is %d, not %d:\n%s", exitCodeOf(err), cli.ExitInterrupted, said.all.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("said"), said.all.Bytes(), 0o644))
}

// signalAt interrupts a process when it has written a text.
type signalAt struct {
	text    string
	process func() *os.Process
	all     bytes.Buffer
	sent    bool
}

func (s *signalAt) Write(p []byte) (int, error) {
	s.all.Write(p)
	if !s.sent && strings.Contains(s.all.String(), s.text) {
		s.sent = true
		if err := s.process().Signal(os.Interrupt); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
