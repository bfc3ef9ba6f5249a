//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestSuites: what .ci/suites says of a suite, and whether CI fails. make is a script
// here, whose target is a command of the shell.
func TestSuites(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("timeout"); err != nil {
		t.Skip("needs timeout, of the coreutils")
	}
	folder := t.TempDir()
	fake := "#!/bin/sh\nshift\n$1\n"
	if err := os.WriteFile(filepath.Join(folder, "make"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		suite  string
		left   time.Duration // 0 is no end
		says   string
		failed bool
	}{
		{"true=0", 0, "ok true: ", false},
		{"true=9", 20 * time.Second, "ok true: ", false},
		{"false=0", 0, "FAILED false: after ", true},
		{"sleep 30=1", 2 * time.Second, "FAILED sleep 30: not done after ", true},
		{"true=90", 20 * time.Second, "NOT RUN true: it may take 90 s, and ", false},
		{"true=1", -time.Second, "NOT RUN true: it may take 1 s, and -", false},
		{"echo NOT RUN foreign: there is no g++=0", 0, "NOT RUN foreign: there is no g++", false},
	} {
		command := exec.CommandContext(t.Context(), clitest.ModuleRoot+"/.ci/suites", c.suite, "echo the next=0")
		command.Env = append(os.Environ(), "TESTS_GRACE=0", "PATH="+folder+":"+os.Getenv("PATH"))
		if c.left != 0 {
			command.Env = append(command.Env, fmt.Sprint("TESTS_END=", time.Now().Add(c.left).Unix()))
		}
		out, err := command.CombinedOutput()
		if !strings.Contains("\n"+string(out), "\n"+c.says) || err != nil != c.failed {
			t.Errorf("%s with %v left: %v\n%swant %q", c.suite, c.left, err, out, c.says)
		}
	}
}
