// Package clitest runs leadetl for tests: in the process of the test, and as a process
// of its own, which the binary of the test is too.
package clitest

import (
	"bytes"
	"errors"
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline/verify"
	"github.com/leadetl/leadetl/sinks"
)

var (
	// ModuleRoot is the way from the folder of a test to that of the module.
	ModuleRoot = wayUp("go.mod")
	// Samples is the way to the sample data.
	Samples = ModuleRoot + "/testdata"
)

// wayUp is the way to the nearest folder above that has a file.
func wayUp(name string) string {
	way := ".."
	for range 8 { // the program, which is the test too, runs anywhere
		if _, err := os.Stat(way + "/" + name); err == nil {
			break
		}
		way += "/.."
	}
	return way
}

// Hasty is for the race detector, which has every program sleep for a second
// at its end otherwise.
const Hasty = "atexit_sleep_ms=0"

// Main runs the tests of a package. Its binary is leadetl, and the programs that
// scripts use, when it is called by their names.
func Main(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"leadetl":     program.Main,
		"parquet":     showParquet, // parquet [-columns a,b] FILE…
		"convert":     convert,     // convert FORMAT FROM TO
		"bought":      bought,      // bought STATE FILE
		"badprovider": badProvider, // badprovider OPTIONS
	})
}

// tests are the tests of this package. The other programs are not among
// them: they have the environment of their callers.
type tests struct{ *testing.M }

// Run runs the tests with the credentials of the S3 servers that they start, and with an
// empty place for states that no test names: the user's own is none of theirs. A test that
// set them itself could not be parallel.
func (m tests) Run() int {
	log.SetOutput(io.Discard) // as main does
	states, err := os.MkdirTemp("", "leadetl-states-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(states)
	for _, variable := range append(s3test.Environ(), "XDG_STATE_HOME="+states) {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	return m.M.Run()
}

// RunRaw runs the program and fails the test unless it is done.
func RunRaw(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := program.Execute(t.Context(), args, strings.NewReader(""), &out, &errOut); code != cli.ExitDone {
		t.Fatalf("leadetl %s: exit code %d\n%s", strings.Join(args, " "), code, &errOut)
	}
	return out.String()
}

// RequireWhole proves a dataset, if it is finished.
func RequireWhole(t testing.TB, dataset string) {
	t.Helper()
	r, err := verify.Check(t.Context(), OpenLocal(t, dataset), verify.Options{Rules: program.VerifyRules, Workers: 2})
	if errors.Is(err, sinks.ErrNoDataset) {
		return
	}
	if err != nil || !r.Whole() {
		t.Errorf("%s: %v, %v", dataset, err, r.Failures)
	}
}

// Failures are the sentences in which leadetl verify says what is wrong with a dataset.
func Failures(t *testing.T, dataset string) []string {
	t.Helper()
	r, err := verify.Check(t.Context(), OpenLocal(t, dataset), verify.Options{Rules: program.VerifyRules, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range r.Failures {
		lines = append(lines, f.String())
	}
	return lines
}

// OpenLocal opens a dataset in a folder.
func OpenLocal(t testing.TB, dataset string) *sinks.Reader {
	t.Helper()
	r, err := sinks.OpenReader(t.Context(), dataset, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
