package main

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
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline/verify"
	"github.com/leadetl/leadetl/sinks"
)

var (
	// moduleRoot is the way from the folder of a test to that of the module.
	moduleRoot = wayUp("go.mod")
	// samples is the way to the sample data.
	samples = moduleRoot + "/testdata"
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

// hasty is for the race detector, which has every program sleep for a second
// at its end otherwise.
const hasty = "atexit_sleep_ms=0"

// runTests runs the tests of a package. Its binary is leadetl, and the programs that
// scripts use, when it is called by their names.
func runTests(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"leadetl": program.Main,
		"parquet": showParquet, // parquet [-columns a,b] FILE…
		"convert": convert,     // convert FORMAT FROM TO
		"bought":  bought,      // bought STATE FILE
	})
}

// tests are the tests of this package. The other programs are not among
// them: they have the environment of their callers.
type tests struct{ *testing.M }

// Run runs the tests with the credentials of the S3 servers that they start: a
// test that set them itself could not be parallel.
func (m tests) Run() int {
	log.SetOutput(io.Discard) // as main does
	for _, variable := range s3test.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	return m.M.Run()
}

// lead runs the program and fails the test unless it is done.
func lead(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := program.Execute(t.Context(), args, strings.NewReader(""), &out, &errOut); code != cli.ExitDone {
		t.Fatalf("leadetl %s: exit code %d\n%s", strings.Join(args, " "), code, &errOut)
	}
	return out.String()
}

// requireWhole proves a dataset, if it is finished.
func requireWhole(t testing.TB, dataset string) {
	t.Helper()
	r, err := verify.Check(t.Context(), openLocal(t, dataset), verify.Options{Rules: program.VerifyRules, Workers: 2})
	if errors.Is(err, sinks.ErrNoDataset) {
		return
	}
	if err != nil || !r.Whole() {
		t.Errorf("%s: %v, %v", dataset, err, r.Failures)
	}
}

func failures(t *testing.T, dataset string) []string {
	t.Helper()
	r, err := verify.Check(t.Context(), openLocal(t, dataset), verify.Options{Rules: program.VerifyRules, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range r.Failures {
		lines = append(lines, f.String())
	}
	return lines
}

func openLocal(t testing.TB, dataset string) *sinks.Reader {
	t.Helper()
	r, err := sinks.OpenReader(t.Context(), dataset, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
