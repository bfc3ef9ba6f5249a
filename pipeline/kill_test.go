//go:build unix

package pipeline_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
)

// TestProgram stops runs from outside: a killed run is the whole program
// killed, so it builds it. Whatever was done to them, they end with the
// dataset of an undisturbed run, byte for byte.
func TestProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	p := buildProgram(t)
	t.Run("killed, rows parted by a column", func(t *testing.T) {
		parted := p
		parted.flags = []string{"--partition-by", "land"}
		undisturbed := t.TempDir()
		started := time.Now()
		parted.finish(t, undisturbed)
		testKilled(t, parted, filepath.Join(undisturbed, "out"), time.Since(started))
	})
	undisturbed := t.TempDir()
	started := time.Now()
	p.finish(t, undisturbed)
	took := time.Since(started)
	want := filepath.Join(undisturbed, "out")
	t.Run("killed", func(t *testing.T) { testKilled(t, p, want, took) })
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, p, want) })
}

const (
	killRows        = 160_000
	killRowsPerPart = 10_000
	// killSeed makes the moments repeatable as far as another process's
	// clock can be.
	killSeed = 20_261_120
)

// program is the built leadetl and an input for it.
type program struct {
	binary, in string
	flags      []string // beside those of every run
}

func buildProgram(t *testing.T) program {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "tool", "-n", "leadetl") // builds it once, into the build cache
	var said bytes.Buffer
	build.Stderr = &said
	path, err := build.Output()
	if err != nil {
		t.Fatalf("go tool -n leadetl: %v\n%s", err, &said)
	}
	p := program{binary: strings.TrimSpace(string(path)), in: filepath.Join(dir, "in.csv")}
	var b strings.Builder
	b.WriteString("id,land,email\n")
	for i := range killRows {
		switch {
		case i%50_021 == 0:
			b.WriteString("malformed\n")
		case i%1_009 == 0:
			fmt.Fprintf(&b, "%d,L%d,invalid\n", i, i%7)
		default:
			fmt.Fprintf(&b, "%d,L%d,person%d@mail.example\n", i, i%7, i)
		}
	}
	if err := os.WriteFile(p.in, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// command runs the job in a folder of its own: dir/out, dir/state.
func (p program) command(dir string, flags ...string) *exec.Cmd {
	return exec.Command(p.binary, append([]string{
		"run", "email_to_hem", "--in", p.in, "--out", filepath.Join(dir, "out"), "--state", filepath.Join(dir, "state"),
		"--set", "rows_per_part=" + strconv.Itoa(killRowsPerPart), "--workers", "3",
	}, slices.Concat(p.flags, flags)...)...)
}

// finish runs the job to its end.
func (p program) finish(t *testing.T, dir string) string {
	t.Helper()
	c := p.command(dir, "--log-level", "warn")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("the run failed: %v\n%s", err, out)
	}
	return string(out)
}

// testKilled kills the program with SIGKILL at random moments, and then lets
// it finish. LEADETL_KILLS is how many kills have to hit (default 6, the full
// form 200).
func testKilled(t *testing.T, p program, undisturbed string, took time.Duration) {
	kills := 6
	if text := os.Getenv("LEADETL_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	want, wantManifest := content(t, undisturbed), readManifest(t, undisturbed)
	random := rand.New(rand.NewPCG(killSeed, 0))
	t.Logf("seed %d, %d kills, a run takes %v", killSeed, kills, took.Round(time.Millisecond))
	hits, published := 0, 0
	for round := 0; hits < kills; round++ {
		if round > 3*kills+20 {
			t.Fatalf("%d rounds, and only %d kills have hit", round, hits)
		}
		dir := t.TempDir()
		out := filepath.Join(dir, "out")
		for range 1 + random.IntN(3) {
			hit := killAfter(t, p.command(dir, "--quiet"), time.Duration(random.Int64N(int64(took))))
			n := checkWreck(t, out, want)
			if hit {
				hits++
				published += n
			}
		}
		p.finish(t, dir)
		requireSame(t, content(t, out), want)
		requireSameManifest(t, readManifest(t, out), wantManifest)
		if got, want := listing(t, out), listing(t, undisturbed); len(got) != len(want) {
			t.Errorf("round %d left %q", round, slices.Sorted(maps.Keys(got)))
		}
		if left := listing(t, filepath.Join(dir, "state", "runs")); len(left) > 0 {
			t.Errorf("round %d left %d files of state", round, len(left))
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
		os.RemoveAll(dir)
	}
	t.Logf("%d kills hit; %d files of parts were there when they did", hits, published)
}

// killAfter starts the command and kills it after a while; hit says that it
// was still running.
func killAfter(t *testing.T, c *exec.Cmd, after time.Duration) (hit bool) {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { c.Process.Kill() })
	defer timer.Stop()
	err := c.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return true
	}
	t.Fatalf("%v\n%s", err, stderr.String())
	return false
}

// checkWreck looks at what a kill left: every part there is whole, and
// _SUCCESS only stands by a whole dataset. It returns the count of their files.
func checkWreck(t *testing.T, out string, want map[string]string) int {
	t.Helper()
	files := content(t, out)
	for name, data := range files {
		if !strings.HasPrefix(filepath.Base(name), ".") && data != want[name] {
			t.Errorf("a kill left a broken %s", name)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "_SUCCESS")); err == nil {
		requireSame(t, files, want)
		readManifest(t, out)
	}
	return len(parts(files)) + len(of(files, "land="))
}

// requireSameManifest compares all but times.
func requireSameManifest(t *testing.T, got, want *sinks.Manifest) {
	t.Helper()
	text := func(m *sinks.Manifest) string {
		lines := fmt.Sprintf("%+v %s %+v", m.Totals, m.JobID, m.Schema)
		for _, p := range m.Parts {
			lines += fmt.Sprintf("\n%s %d %d %s %s %+v", p.Name, p.Rows, p.Bytes, p.SHA256, p.InputDigest, p.Totals)
			for _, f := range p.Files {
				lines += fmt.Sprintf(" %s %d %d %s", f.Name, f.Rows, f.Bytes, f.SHA256)
			}
			if p.Rejects != nil {
				lines += fmt.Sprintf(" %d %s", p.Rejects.Rows, p.Rejects.SHA256)
			}
		}
		return lines
	}
	// Inputs and settings name files, and are the same file in both.
	if text(got) != text(want) {
		t.Errorf("manifest\n%s\nwant\n%s", text(got), text(want))
	}
}

// testInterrupted ends the program as Ctrl-C does: in good order, with 130,
// and the same command continues.
func testInterrupted(t *testing.T, p program, undisturbed string) {
	dir := t.TempDir()
	c := p.command(dir, "--log-level", "debug", "--log-format", "json")
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	interrupted := false
	for read := bufio.NewScanner(stderr); read.Scan(); {
		lines = append(lines, read.Text())
		if !interrupted && strings.Contains(read.Text(), "part published") {
			interrupted = true // a second signal would end it at once
			c.Process.Signal(os.Interrupt)
		}
	}
	err = c.Wait()
	if code := c.ProcessState.ExitCode(); code != 130 {
		t.Fatalf("exit code %d (%v), want 130\n%s", code, err, strings.Join(lines, "\n"))
	}
	for name := range listing(t, filepath.Join(dir, "out")) {
		if !strings.HasPrefix(name, "_report.") && !strings.HasPrefix(filepath.Base(name), "part-") {
			t.Errorf("an interrupted run left %s", name)
		}
	}
	if r := readReport(t, filepath.Join(dir, "out")); r == nil || r.Stop.Reason != report.StopInterrupted {
		t.Errorf("the report of an interrupted run: %+v", r)
	}
	if out := p.finish(t, dir); !strings.Contains(out, "from earlier runs") {
		t.Errorf("the rerun does not say that it went on:\n%s", out)
	}
	requireSame(t, content(t, filepath.Join(dir, "out")), content(t, undisturbed))
}
