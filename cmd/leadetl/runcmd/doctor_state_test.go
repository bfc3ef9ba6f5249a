package runcmd_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/sinks"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// killedState makes a state as a killed process leaves it.
func killedState(t *testing.T) (state string) {
	t.Helper()
	alive, state := t.TempDir(), t.TempDir()
	s, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(alive, "answers")), answers.Options{})
	must(t, err)
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		q := answers.Question{Scope: answers.Scope{Service: "https://leads.example", Operation: "enrichment"}, Key: key}
		_, err := s.Intent(t.Context(), q, answers.Send{Run: "run", At: time.Now()})
		if must(t, err); key != "f" {
			must(t, s.Put(t.Context(), q, answers.Answer{Run: "run", Outcome: answers.Matched, Credits: new(int64(2)), Received: time.Now()}))
		}
	}
	own, err := journal.InFolder(disk.Dir(alive)).Progress(t.Context(), "out", false)
	must(t, err)
	j := journal.New(own)
	must(t, j.Begin(journal.Header{JobID: "job", Run: "run"}, nil), j.Record(1, sinks.Part{}), j.Record(2, sinks.Part{}), j.Close())
	nights, err := journal.InFolder(disk.Dir(alive)).Nights(t.Context(), "job", "monday")
	must(t, err, nights.Finished(journal.Night{JobID: "job"}))
	sealed, err := appendlog.Seal("upload-1", []byte("part-00000.parquet\n"))
	must(t, err, os.MkdirAll(filepath.Join(alive, "s3", "dataset"), 0o700), os.WriteFile(filepath.Join(alive, "s3", "dataset", "upload-1"), sealed, 0o600))
	must(t, os.CopyFS(state, os.DirFS(alive)), s.Close())
	return state
}

func doctor(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var text bytes.Buffer
	c := runcmd.NewDoctorCommand(cli.Streams{In: strings.NewReader(""), Out: &text, Err: &text})
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(context.Background())
	if err != nil {
		text.WriteString(err.Error())
	}
	return text.String(), cli.ExitCode(err)
}

// damage overwrites a sector of a file in a state.
func damage(t *testing.T, state, pattern string, at int) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(state, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	text, err := os.ReadFile(found[0])
	must(t, err)
	clear(text[at:min(at+512, len(text))])
	must(t, os.WriteFile(found[0], text, 0o600))
}

// TestDoctorOfState: a whole state is said to be whole, every damaged file is named, and a repair keeps it and
// makes the state whole.
func TestDoctorOfState(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		at            int
		says          string
		aside         bool
	}{
		{"whole", "", 0, "5 stored answers, 1 open call", false},
		{"an intent", "answers/*.log", 1024, "is damaged at byte 1024: record 3 is damaged", true},
		{"an answer", "answers/*.log", 1536, "Lost: 1 stored answer, which cost 2 credits, and 0 calls", true},
		{"the log", "answers/*.log", -1, "it is missing", false},
		{"the journal", "runs/*/journal/0000000001", 0, "journal/0000000001: damaged", true},
		{"the header", "runs/*/beside/header", 0, "header: damaged", true},
		{"an upload", "s3/*/upload-1", 0, "upload-1: damaged", true},
		{"the nights", "nights/*", 0, "the list of finished datasets in the state", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := killedState(t)
			switch {
			case c.at < 0:
				found, err := filepath.Glob(filepath.Join(state, c.pattern))
				must(t, err, os.Remove(found[0]))
			case c.pattern != "":
				damage(t, state, c.pattern, c.at)
			}
			want := 0
			if c.pattern != "" {
				want = 1
			}
			out, code := doctor(t, "--state", state)
			if code != want || !strings.Contains(out, c.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, want, c.says, out)
			}
			if again, _ := doctor(t, "--state", state); again != out {
				t.Errorf("the second time it says:\n%s", again)
			}
			out, code = doctor(t, "--state", state, "--repair")
			if code != 0 || c.aside != strings.Contains(out, "set aside") {
				t.Errorf("repaired with exit code %d:\n%s", code, out)
			}
			if out, code := doctor(t, "--state", state); code != 0 {
				t.Errorf("after the repair, exit code %d:\n%s", code, out)
			}
		})
	}
	if out, code := doctor(t, "--state", t.TempDir()); code != 0 || !strings.Contains(out, "none are stored") {
		t.Errorf("an empty state: %d\n%s", code, out)
	}
	if out, code := doctor(t, "--state", filepath.Join(t.TempDir(), "none")); code != 2 || !strings.Contains(out, "none") {
		t.Errorf("no state: %d\n%s", code, out)
	}
	if out, code := doctor(t, "email_to_hem", "--repair"); code != 2 || !strings.Contains(out, "--state alone") {
		t.Errorf("a repair of no state: %d\n%s", code, out)
	}
}
