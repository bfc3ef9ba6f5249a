//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/s3test"
)

// rows are the lines of doctor's table by what was checked, with single spaces.
func checked(p *process) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(p.printed.String()) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		rows[what] = strings.Join(strings.Fields(rest), " ")
	}
	return rows
}

// TestDoctorOnS3: with the policy that docs/s3.md shows all checks pass and
// leave nothing behind; without one of its permissions, doctor names it.
func TestDoctorOnS3(t *testing.T) {
	const user, secret = "nightly", "CanaryOfTheUser00000000000000000"
	j := newS3Job(t)
	j.server.AddUser(t, user, secret)
	t.Setenv("AWS_ACCESS_KEY_ID", user)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	j.put("lists/a.csv", emailList(10))
	args := j.args("s3://leads/lists/**.csv", "s3://leads/hems/")
	args[0] = "doctor"
	policy := shownPolicy(t, 0)
	j.server.Allow(t, s3Bucket, user, policy)
	p := startProgram(t, args...)
	rows := checked(p.waited())
	if p.code() != cli.ExitDone || !strings.HasPrefix(rows["input"], "ok 1 file, ") || rows["output"] != "ok s3://leads/hems/: list, write, read and remove" || rows["clock"] != "ok as S3 has it" {
		t.Errorf("exit code %d, %q\n%s", p.code(), rows, p.said)
	}
	for _, key := range []string{"hems", "lists"} {
		if entries, err := os.ReadDir(j.object(key)); err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "a.csv" }) {
			t.Errorf("doctor left %v in %s", entries, key)
		}
	}
	for i, statement := range policy.Statement {
		for _, action := range actions(statement) {
			if action == "s3:AbortMultipartUpload" {
				continue // there is no upload to abort
			}
			less := s3test.Policy{Version: policy.Version}
			for k, other := range policy.Statement {
				kept := slices.DeleteFunc(actions(other), func(a string) bool { return k == i && a == action })
				if other.Action = kept; len(kept) > 0 {
					less.Statement = append(less.Statement, other)
				}
			}
			j.server.Allow(t, s3Bucket, user, less)
			p := startProgram(t, args...)
			if code := p.code(); code != cli.ExitUsage || !strings.Contains(p.printed.String(), "allow "+action+" on ") {
				t.Errorf("without %s: exit code %d\n%s%s", action, code, p.printed, p.said)
			}
		}
	}

	p = startProgram(t, append(args, "--s3-endpoint", "http://127.0.0.1:1", "--s3-give-up-after", "1s")...)
	if rows := checked(p.waited()); p.code() != cli.ExitTryAgain || !strings.HasPrefix(rows["input"], "failed ") || !strings.HasPrefix(rows["output"], "failed ") {
		t.Errorf("store that is gone: exit code %d, %q", p.code(), rows)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	p = startProgram(t, append(args, "--s3-endpoint", other.URL, "--in", "s3://leads/x.csv")...)
	want := "the bucket leads does not exist there, or " + other.URL + " is not an S3 store; "
	if rows := checked(p.waited()); p.code() != cli.ExitUsage || !strings.Contains(rows["input"], want) || !strings.Contains(rows["output"], want) || !strings.HasPrefix(rows["clock"], "- not compared") {
		t.Errorf("not S3: exit code %d, %q", p.code(), rows)
	}
}

// TestDoctorOfService: doctor asks a service for the balance, and spends none
// of it.
func TestDoctorOfService(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	key, poor := place.customer("Rich", "1000"), place.customer("Poor", "0")
	service := place.serve()
	doctor := func(key string, flags ...string) (*process, map[string]string) {
		p := startProgram(t, append([]string{"doctor", "enrichment", "--in", samples + "/profiles.csv", "--out", t.TempDir(), "--state", t.TempDir(),
			"--resolver", service.public, "--api-key-file", secretFile(t, key)}, flags...)...)
		return p, checked(p.waited())
	}
	for range 2 {
		p, rows := doctor(key, "--max-credits", "1500")
		if p.code() != cli.ExitDone || rows["service"] != "ok "+service.public || rows["API key"] != "ok accepted" ||
			rows["credits"] != "ok 1,000, less than --max-credits 1,500" || rows["clock"] != "ok as the service has it" || !strings.HasPrefix(rows["input"], "ok 1 file") {
			t.Errorf("exit code %d, %q\n%s", p.code(), rows, p.said)
		}
	}
	if p, rows := doctor(poor); p.code() != cli.ExitBudget || !strings.HasPrefix(rows["credits"], "failed ") {
		t.Errorf("no credits: exit code %d, %q", p.code(), rows)
	}
	if p, rows := doctor(key[:len(key)-6] + "AAAAAA"); p.code() != cli.ExitUsage || !strings.HasPrefix(rows["API key"], "failed the service refuses it; check --api-key-file") {
		t.Errorf("a wrong key: exit code %d, %q", p.code(), rows)
	}
	other, lean := httptest.NewServer(http.NotFoundHandler()), httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("API-Version", "1.0.0")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer other.Close()
	defer lean.Close()
	for _, address := range []string{service.public + "/elsewhere", service.internal, other.URL} {
		if p, rows := doctor(key, "--resolver", address); p.code() != cli.ExitUsage || rows["API key"] != "" ||
			rows["service"] != "failed "+address+" answers, but does not look like a Lead Resolution Service; check --resolver" {
			t.Errorf("not a service: exit code %d, %q", p.code(), rows)
		}
	}
	if p, rows := doctor(key, "--resolver", lean.URL); p.code() != cli.ExitDone || rows["API key"] != "- not checked: the service answers 404 to /account/balance" {
		t.Errorf("no account: exit code %d, %q", p.code(), rows)
	}
	service.stop(os.Interrupt)
	if p, rows := doctor(key); p.code() != cli.ExitTryAgain || !strings.Contains(rows["service"], "connection refused; check --resolver, or try again later") {
		t.Errorf("no service: exit code %d, %q", p.code(), rows)
	}
}

// secretFile is a file of a key that only its user may read.
func secretFile(t *testing.T, key string) string {
	path := t.TempDir() + "/key"
	if err := os.WriteFile(path, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
