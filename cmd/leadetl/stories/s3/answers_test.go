//go:build unix

package s3

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// buyAnswers fills a state folder: answers of two services, and open calls.
func buyAnswers(t *testing.T, state string, keys ...string) {
	t.Helper()
	s, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(state, wire.AnswersFolder)), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		for _, line := range [][4]string{
			{"https://leads.example", "email_to_hem", "matched", `{"lead":{"name":"Ann Canary"}}`},
			{"https://other.example", "enrichment", "no_match", "\xffcanary"},
			{"https://leads.example", "deanonymization", "unknown", ""},
		} {
			if err := clitest.Buy(s, i, line[0], line[1], key, line[2], "2", "2026-11-01", line[3]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// s3Program runs the program with the flags of the store, and returns what it
// said.
func s3Program(t *testing.T, j *clitest.S3Job, want int, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	code := program.Execute(t.Context(), clitest.OnStore(j.Proxy.URL, args...), nil, &out, &said)
	if code != want {
		t.Fatalf("leadetl %s: exit code %d, want %d:\n%s", strings.Join(args, " "), code, want, said.String())
	}
	if strings.Contains(said.String(), "canary") {
		t.Errorf("says %s", said.String())
	}
	return out.String() + said.String()
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

// TestAnswersOnS3: answers go to S3 and back, and are the same at each stop.
func TestAnswersOnS3(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	const state = "s3://leads/state/"
	buyAnswers(t, j.Path("a"), "ann.canary@x.example", "bob.canary@x.example", "cy.canary@x.example")
	if got, want := s3Program(t, j, 0, "answers", "copy", j.Path("a"), state), "6 answers and 3 open calls copied\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := s3Program(t, j, 0, "answers", "copy", j.Path("a"), state), "0 answers and 0 open calls copied\n"; got != want {
		t.Errorf("again: %q, want %q", got, want)
	}
	if got, want := s3Program(t, j, 0, "answers", "copy", state, j.Path("b")), "6 answers and 3 open calls copied\n"; got != want {
		t.Errorf("back: %q, want %q", got, want)
	}
	for _, args := range [][]string{{"stat"}, {"stat", "--json"}, {"list", "--json"}, {"list", "--unknown"}, {"list", "--parked"}, {"export"},
		{"export", "--operation", "enrichment"}, {"list", "--service", "https://leads.example/"}} {
		var said [3][]string
		for i, where := range []string{j.Path("a"), state, j.Path("b")} {
			var out, err bytes.Buffer
			command := clitest.OnStore(j.Proxy.URL, slices.Concat([]string{"answers"}, args, []string{"--state", where})...)
			if code := program.Execute(t.Context(), command, nil, &out, &err); code != 0 {
				t.Fatalf("%s: exit code %d: %s", command, code, err.String())
			}
			said[i] = sortedLines(out.String())
		}
		if !slices.Equal(said[0], said[1]) || !slices.Equal(said[0], said[2]) {
			t.Errorf("%s: folder\n%s\nS3\n%s\nback\n%s", args, said[0], said[1], said[2])
		}
	}
	exported := filepath.Join(t.TempDir(), "answers.jsonl")
	s3Program(t, j, 0, "answers", "export", "--state", j.Path("a"), "--out", exported)
	for _, want := range []string{"6 answers and 3 open calls imported\n", "0 answers and 0 open calls imported\n"} {
		if got := s3Program(t, j, 0, "answers", "import", exported, "--state", "s3://leads/imported/"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if was, is := sortedLines(s3Program(t, j, 0, "answers", "export", "--state", state)), sortedLines(s3Program(t, j, 0, "answers", "export", "--state", "s3://leads/imported/")); !slices.Equal(was, is) {
			t.Errorf("exported\n%s\nand after the import\n%s", was, is)
		}
	}
	if got := s3Program(t, j, 0, "answers", "compact", "--state", state); got != "2 files before, 2 after\n" {
		t.Errorf("compact: %q", got)
	}

	// Of the names of objects none is personal.
	for name := range clitest.Files(t, j.Object("state")) {
		if strings.Contains(name, "canary") {
			t.Errorf("an object is named %s", name)
		}
	}
}

// TestAnswersOnS3Refused: what cannot be done says what to do instead.
func TestAnswersOnS3Refused(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	buyAnswers(t, j.Path("a"), "ann.canary@x.example")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"answers stat --state s3://leads/none/", cli.ExitUsage, "s3://leads/none/ has no stored answers; a run with --resolver URL stores them, or name another --state"},
		{"answers copy s3://leads/none/ " + j.Path("c"), cli.ExitUsage, "s3://leads/none/ has no stored answers; "},
		{"answers copy nowhere s3://leads/state/", cli.ExitUsage, "nowhere has no stored answers; "},
		{"answers copy s3://leads/none/", cli.ExitUsage, "name two states, as in: leadetl answers copy /var/lib/leadetl s3://leads/state/"},
		{"answers copy " + j.Path("a") + " s3://absent/state/", cli.ExitUsage, "absent"},
		{"answers forget --older-than 1d --state s3://leads/none/", cli.ExitUsage, "s3://leads/none/ has no stored answers; "},
		{"answers forget --older-than 1d --delete-versions --state " + j.Path("a"), cli.ExitUsage, "--delete-versions: only a state on S3 has versions"},
		{"answers compact --state folder", cli.ExitUsage, "folder has no stored answers; "},
		{"answers copy " + j.Path("a") + " s3://leads/state/ --s3-sse none", cli.ExitUsage, "s3_sse"},
	} {
		if got := s3Program(t, j, c.code, strings.Fields(c.args)...); !strings.Contains(got, c.says) {
			t.Errorf("%s says %q, want %q", c.args, got, c.says)
		}
	}
	if _, err := os.Stat(j.Path("c")); !os.IsNotExist(err) {
		t.Errorf("a refused copy made a folder: %v", err)
	}
	// Somebody else writes.
	j.Put("state/lease/bca91b8bf348708a.json", `{"holder":"other","process":"other","host":"elsewhere","pid":7,"since":"now"}`)
	if got := s3Program(t, j, cli.ExitTryAgain, "answers", "copy", j.Path("a"), "s3://leads/state/"); !strings.Contains(got, "process 7 on elsewhere") {
		t.Errorf("says %q", got)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(j.Object("state/lease/bca91b8bf348708a.json"), past, past); err != nil {
		t.Fatal(err)
	}
	s3Program(t, j, 0, "answers", "copy", j.Path("a"), "s3://leads/state/")

	// S3 is away.
	j.Proxy.Do(func(*http.Request) s3test.Fault { return s3test.Fault{Kind: s3test.Reset} })
	if got := s3Program(t, j, cli.ExitTryAgain, "answers", "stat", "--state", "s3://leads/state/", "--s3-give-up-after", "1s"); !strings.Contains(got, "gave up after 1s") {
		t.Errorf("says %q", got)
	}
}

// TestForgetOnS3: whatever is forgotten, a state on S3 says and keeps the same
// as a folder. It is refused beside a run, and where earlier versions are kept.
func TestForgetOnS3(t *testing.T) {
	j := clitest.NewS3Job(t)
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(j.Path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return j.Path(name)
	}
	people := write("people.csv", "email\nbob.canary@x.example\nnobody@x.example\nnone\n")
	list := write("list.txt", "cy.canary@x.example\n")
	buyAnswers(t, j.Path("a"), "ann.canary@x.example", "bob.canary@x.example", "cy.canary@x.example", "di.canary@x.example")
	const state = "s3://leads/state/"
	s3Program(t, j, 0, "answers", "copy", j.Path("a"), state)
	var hash string
	for line := range strings.Lines(s3Program(t, j, 0, "answers", "list", "--state", state, "--operation", "enrichment", "--json")) {
		_, rest, _ := strings.Cut(line, `"key_hash":"`)
		hash, _, _ = strings.Cut(rest, `"`)
	}
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{cli.ExitDone, []string{"--key-hash", hash}, "1 identifier forgotten"},
		{cli.ExitDone, []string{"--key-hash", hash}, "0 identifiers forgotten"},
		{cli.ExitRejects, []string{"--in", people}, "1 row without an identifier passed over"},
		{cli.ExitRejects, []string{"--file", list}, "1 identifier kept for an open call"},
		{cli.ExitDone, []string{"--file", list, "--even-open"}, "1 identifier forgotten"},
		{cli.ExitDone, []string{"--older-than", "30000d"}, "0 answers forgotten"},
		{cli.ExitDone, []string{"--older-than", "0.001s"}, "answers forgotten"},
	} {
		var said, left [2]string
		for i, where := range []string{j.Path("a"), state} {
			said[i] = s3Program(t, j, c.code, slices.Concat([]string{"answers", "forget", "--state", where}, c.args)...)
			left[i] = strings.Join(sortedLines(s3Program(t, j, 0, "answers", "list", "--state", where, "--json")+s3Program(t, j, 0, "answers", "list", "--state", where, "--json", "--unknown")), "")
		}
		if said[0] != said[1] || left[0] != left[1] || !strings.Contains(said[1], c.says) {
			t.Errorf("%s: a folder says\n%s\nS3 says\n%s\nleft in the folder\n%s\non S3\n%s", c.args, said[0], said[1], left[0], left[1])
		}
	}

	j.Put("state/lease/bca91b8bf348708a.json", `{"holder":"other","process":"other","host":"elsewhere","pid":7,"since":"now"}`)
	if got := s3Program(t, j, cli.ExitTryAgain, "answers", "forget", "--older-than", "1d", "--state", state); !strings.Contains(got, "process 7 on elsewhere") {
		t.Errorf("beside a run: %q", got)
	}
}

// TestForgetVerifiedOnS3: with an identifier, what a verifier says about the address in its answer
// is forgotten too, in a folder and on S3.
func TestForgetVerifiedOnS3(t *testing.T) {
	j := clitest.NewS3Job(t)
	s, err := answers.Open(context.Background(), answers.InFolder(j.Path("a/"+wire.AnswersFolder)), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range [][4]string{
		{"acme", "network_url:0123456789abcdef", "network.example/in/ann-canary", `{"email":"Ann@x.example"}`},
		{"acme", "network_url:0123456789abcdef", "network.example/in/bob-canary", `{"email":"bob@x.example"}`},
		{"check", "email:0123456789abcdef", "ann@x.example", `{"status":"valid"}`},
		{"check", "email:0123456789abcdef", "bob@x.example", `{"status":"valid"}`},
	} {
		if err := clitest.Buy(s, i, line[0], line[1], line[2], "matched", "1", "2026-11-01", line[3]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	const state = "s3://leads/state/"
	s3Program(t, j, 0, "answers", "copy", j.Path("a"), state)
	if err := os.WriteFile(j.Path("people.csv"), []byte("network_url\nnetwork.example/in/ann-canary\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{j.Path("a"), state} {
		if got := s3Program(t, j, 0, "answers", "forget", "--in", j.Path("people.csv"), "--network-hosts", "network.example", "--state", where); got != "2 identifiers forgotten\n" {
			t.Errorf("%s: %q", where, got)
		}
		if left := s3Program(t, j, 0, "answers", "export", "--state", where); strings.Contains(left, "ann") || strings.Count(left, "bob@x.example\",\"service\":\"check") != 1 {
			t.Errorf("%s has left\n%s", where, left)
		}
	}
	// The lists of a prefix are read as a run reads them.
	j.Put("optouts/october/list.csv", "email\nbob@x.example\n")
	j.Put("optouts/note.txt", "ask before you delete\n")
	for _, where := range []string{j.Path("a"), state} {
		if got := s3Program(t, j, cli.ExitUsage, "answers", "forget", "--file", "s3://leads/optouts/", "--state", where); !strings.Contains(got, "s3://leads/optouts/note.txt is no suppression list") {
			t.Errorf("%s: %q", where, got)
		}
		if got := s3Program(t, j, 0, "answers", "forget", "--file", "s3://leads/optouts/october/", "--state", where); got != "2 identifiers forgotten\n" {
			t.Errorf("%s: %q", where, got)
		}
	}
}

// TestForgetVersionsOnS3: in a bucket that keeps versions, answers are forgotten
// with all versions or not at all.
func TestForgetVersionsOnS3(t *testing.T) {
	server := s3test.StartVersioned(t, clitest.S3Bucket)
	s3test.Setenv(t)
	j := clitest.NewS3JobOn(t, server)
	buyAnswers(t, j.Path("a"), "ann.canary@x.example", "bob.canary@x.example")
	const state = "s3://leads/state/"
	s3Program(t, j, 0, "answers", "copy", j.Path("a"), state)
	if got := s3Program(t, j, cli.ExitUsage, "answers", "forget", "--older-than", "1d", "--state", state); !strings.Contains(got, "--delete-versions deletes the versions too") {
		t.Errorf("says %q", got)
	}
	// This server refuses to create an object again that was removed, unlike S3.
	store := objects.New(t.Context(), objects.Options{Endpoint: server.URL, PathStyle: true})
	if err := store.RemoveOldVersions(t.Context(), objects.Location{Bucket: clitest.S3Bucket, Key: "state/lease/"}); err != nil {
		t.Fatal(err)
	}
	if got := s3Program(t, j, 0, "answers", "forget", "--older-than", "1d", "--state", state, "--delete-versions"); got != "4 answers forgotten\n" {
		t.Errorf("says %q", got)
	}
	versions, err := server.Versions(t, clitest.S3Bucket)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if strings.Contains(v, "/f/") || strings.Contains(v, "/c/") && strings.Contains(v, "removed") {
			t.Errorf("%s is left", v)
		}
	}
}

// TestRunsOnS3: what unfinished runs have left is listed, and removed unless they
// may be at work.
func TestRunsOnS3(t *testing.T) {
	j := clitest.NewS3Job(t)
	const state = "s3://leads/state/"
	if got := s3Program(t, j, 0, "answers", "runs", "--state", state); got != "all runs have finished\n" {
		t.Errorf("without runs: %q", got)
	}
	j.Put("state/format.json", `{"format":3}`)
	j.Put("state/runs/old/job.json", "{}")
	j.Put("state/runs/old/rows/p0.arrow", strings.Repeat("x", 2000))
	j.Put("state/runs/new/job.json", "{}")
	past := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, name := range []string{"job.json", "rows/p0.arrow"} {
		if err := os.Chtimes(j.Object("state/runs/old/"+name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(s3Program(t, j, 0, "answers", "runs", "--state", state), "\n")
	if len(lines) != 4 || strings.Join(strings.Fields(lines[1]), " ") != "old 2026-11-01T12:00:00Z 2 2.0 kB" || !strings.HasPrefix(lines[2], "new ") {
		t.Errorf("listed %q", lines)
	}
	if got := s3Program(t, j, cli.ExitTryAgain, "answers", "runs", "--state", state, "--remove", "new"); !strings.Contains(got, "try again an hour after that") {
		t.Errorf("removed one at work: %q", got)
	}
	if got := s3Program(t, j, cli.ExitUsage, "answers", "runs", "--state", state, "--remove", "none"); !strings.Contains(got, "there is no such run") {
		t.Errorf("removed none: %q", got)
	}
	if got := s3Program(t, j, 0, "answers", "runs", "--state", state, "--remove", "old"); got != "1 run removed\n" {
		t.Errorf("removed: %q", got)
	}
	if got := s3Program(t, j, 0, "answers", "runs", "--state", state); strings.Contains(got, "old") || !strings.Contains(got, "new ") {
		t.Errorf("afterwards: %q", got)
	}
}

// TestPolicyOfState: the permissions that docs/s3.md names for stored answers
// are enough.
func TestPolicyOfState(t *testing.T) {
	const user, secret = "keeper", "CanaryOfTheUser00000000000000000"
	j := clitest.NewS3Job(t)
	j.Server.AddUser(t, user, secret)
	buyAnswers(t, j.Path("a"), "ann.canary@x.example")
	allow := func(actions ...string) {
		j.Server.Allow(t, clitest.S3Bucket, user, s3test.Policy{Version: "2012-10-17", Statement: []s3test.Statement{
			{Effect: "Allow", Action: "s3:ListBucket", Resource: "arn:aws:s3:::leads"},
			{Effect: "Allow", Action: actions, Resource: "arn:aws:s3:::leads/state/*"},
		}})
	}
	t.Setenv("AWS_ACCESS_KEY_ID", user)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	allow("s3:GetObject")
	if got := s3Program(t, j, cli.ExitUsage, "answers", "copy", j.Path("a"), "s3://leads/state/"); !strings.Contains(got, "s3:PutObject") {
		t.Errorf("without s3:PutObject: %s", got)
	}
	allow("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
	s3Program(t, j, 0, "answers", "copy", j.Path("a"), "s3://leads/state/")
	if got := s3Program(t, j, cli.ExitUsage, "answers", "forget", "--older-than", "1d", "--state", "s3://leads/state/"); !strings.Contains(got, "allow s3:GetBucketVersioning on arn:aws:s3:::leads") {
		t.Errorf("without s3:GetBucketVersioning: %s", got)
	}
	allow("s3:GetObject")
	s3Program(t, j, 0, "answers", "export", "--state", "s3://leads/state/", "--out", j.Path("answers.jsonl"))
}
