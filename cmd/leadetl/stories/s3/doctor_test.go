//go:build unix

package s3

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// rows are the lines of doctor's table by what was checked, with single spaces.
func checked(p *clitest.Process) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(p.Printed.String()) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		rows[what] = strings.Join(strings.Fields(rest), " ")
	}
	return rows
}

// TestDoctorOnS3: with deploy/s3-policy.json all checks pass and
// leave nothing behind; without one of its permissions, doctor names it.
func TestDoctorOnS3(t *testing.T) {
	const user, secret = "nightly", "CanaryOfTheUser00000000000000000"
	j := clitest.NewS3Job(t)
	j.Server.AddUser(t, user, secret)
	t.Setenv("AWS_ACCESS_KEY_ID", user)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	j.Put("lists/a.csv", clitest.EmailList(10))
	args := j.Args("s3://leads/lists/**.csv", "s3://leads/hems/")
	args[0] = "doctor"
	policy := policyOf(t, "s3-policy.json")
	j.Server.Allow(t, clitest.S3Bucket, user, policy)
	p := clitest.StartProgram(t, args...)
	rows := checked(p.Waited())
	if p.Code() != cli.ExitDone || !strings.HasPrefix(rows["input"], "ok 1 file, ") || rows["output"] != "ok s3://leads/hems/: list, write, read and remove" || rows["clock"] != "ok as S3 has it" {
		t.Errorf("exit code %d, %q\n%s", p.Code(), rows, p.Said)
	}
	for _, key := range []string{"hems", "lists"} {
		if entries, err := os.ReadDir(j.Object(key)); err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "a.csv" }) {
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
			j.Server.Allow(t, clitest.S3Bucket, user, less)
			p := clitest.StartProgram(t, args...)
			if code := p.Code(); code != cli.ExitUsage || !strings.Contains(p.Printed.String(), "allow "+action+" on ") {
				t.Errorf("without %s: exit code %d\n%s%s", action, code, p.Printed, p.Said)
			}
		}
	}

	p = clitest.StartProgram(t, clitest.LastOfEach(append(args, "--set", "s3_endpoint=http://127.0.0.1:1", "--set", "s3_give_up_after=1s"))...)
	if rows := checked(p.Waited()); p.Code() != cli.ExitTryAgain || !strings.HasPrefix(rows["input"], "failed ") || !strings.HasPrefix(rows["output"], "failed ") {
		t.Errorf("store that is gone: exit code %d, %q", p.Code(), rows)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	p = clitest.StartProgram(t, clitest.LastOfEach(append(args, "--set", "s3_endpoint="+other.URL, "--in", "s3://leads/x.csv"))...)
	want := "the bucket leads does not exist there, or " + other.URL + " is not an S3 store; "
	if rows := checked(p.Waited()); p.Code() != cli.ExitUsage || !strings.Contains(rows["input"], want) || !strings.Contains(rows["output"], want) || !strings.HasPrefix(rows["clock"], "- not compared") {
		t.Errorf("not S3: exit code %d, %q", p.Code(), rows)
	}
}

// TestDoctorOfService: doctor asks a service for the balance, and spends none
// of it.
func TestDoctorOfService(t *testing.T) {
	t.Parallel()
	place := clitest.NewPlace(t)
	key, poor := place.Customer("Rich", "1000"), place.Customer("Poor", "0")
	service := place.Serve()
	doctorOf := func(address, key string, flags ...string) (*clitest.Process, map[string]string) {
		p := clitest.StartProgram(t, append([]string{"doctor", "enrichment", "--in", clitest.Samples + "/profiles.csv", "--out", t.TempDir(), "--state", t.TempDir(),
			"--resolver", address, "--api-key-file", secretFile(t, key)}, flags...)...)
		return p, checked(p.Waited())
	}
	doctor := func(key string, flags ...string) (*clitest.Process, map[string]string) {
		return doctorOf(service.Public, key, flags...)
	}
	for range 2 {
		p, rows := doctor(key, "--max-credits", "1500")
		if p.Code() != cli.ExitDone || rows["service"] != "ok "+service.Public || rows["API key"] != "ok accepted" ||
			rows["credits"] != "ok 1,000, less than --max-credits 1,500" || rows["clock"] != "ok as the service has it" || !strings.HasPrefix(rows["input"], "ok 1 file") {
			t.Errorf("exit code %d, %q\n%s", p.Code(), rows, p.Said)
		}
	}
	few := place.Customer("Careful", "3")
	for key, want := range map[string]string{key: "ok 1,000 credits, enough", few: "ok 3 credits, up to 43 too few: the run may stop; buy more, or set --max-credits"} {
		if p, rows := doctor(key); p.Code() != cli.ExitDone || rows["credits for the list"] != want {
			t.Errorf("exit code %d, %q; want %s", p.Code(), rows, want)
		}
	}
	for limit, want := range map[string]string{"1": "--max-credits is not enough", "45": "--max-credits may not be enough", "46": ""} {
		p, rows := doctor(key, "--max-credits", limit)
		if want != "" {
			want += ": the run would stop; raise the limit and run it again to resume"
		}
		planned := clitest.Run(t, "plan", "enrichment", "--in", clitest.Samples+"/profiles.csv", "--out", t.TempDir(), "--state", t.TempDir(),
			"--resolver", service.Public, "--api-key-file", secretFile(t, key), "--max-credits", limit)
		if p.Code() != cli.ExitDone || strings.TrimPrefix(rows["budget"], "- ") != want || strings.Contains(planned, "budget") != (want != "") || !strings.Contains(planned, want) {
			t.Errorf("--max-credits %s: exit code %d, %q, planned\n%s", limit, p.Code(), rows, planned)
		}
	}
	if p, rows := doctor(poor); p.Code() != cli.ExitBudget || !strings.HasPrefix(rows["credits"], "failed ") {
		t.Errorf("no credits: exit code %d, %q", p.Code(), rows)
	}
	if p, rows := doctor(key[:len(key)-6] + "AAAAAA"); p.Code() != cli.ExitUsage || !strings.HasPrefix(rows["API key"], "failed the service refuses it; check --api-key-file") {
		t.Errorf("a wrong key: exit code %d, %q", p.Code(), rows)
	}
	other, lean := httptest.NewServer(http.NotFoundHandler()), httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("API-Version", "1.0.0")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer other.Close()
	defer lean.Close()
	for _, address := range []string{service.Public + "/elsewhere", service.Internal, other.URL} {
		if p, rows := doctorOf(address, key); p.Code() != cli.ExitUsage || rows["API key"] != "" ||
			rows["service"] != "failed "+address+" answers, but does not look like a Lead Resolution Service; check --resolver" {
			t.Errorf("not a service: exit code %d, %q", p.Code(), rows)
		}
	}
	if p, rows := doctorOf(lean.URL, key); p.Code() != cli.ExitDone || rows["API key"] != "- not checked: the service answers 404 to /account/balance" {
		t.Errorf("no account: exit code %d, %q", p.Code(), rows)
	}
	job := filepath.Join(t.TempDir(), "job.yaml")
	text := fmt.Sprintf("operation: enrichment\nresolvers:\n  - %s: {name: leads, key_file: %s, max_credits: 1500}\n  - %[1]s: {name: poor, key_file: %[3]s}\n", service.Public, secretFile(t, key), secretFile(t, poor))
	if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := clitest.StartProgram(t, "doctor", "--job", job, "--state", t.TempDir())
	if rows := checked(p.Waited()); p.Code() != cli.ExitBudget || rows["leads"] != "ok "+service.Public || rows["API key of leads"] != "ok accepted" ||
		rows["credits of leads"] != "ok 1,000, less than max_credits 1,500" || !strings.HasPrefix(rows["credits of poor"], "failed ") || rows["clock"] != "ok as leads has it" {
		t.Errorf("several: exit code %d, %q", p.Code(), rows)
	}
	service.Stop(os.Interrupt)
	if p, rows := doctor(key); p.Code() != cli.ExitTryAgain || !strings.Contains(rows["service"], "connection refused; check --resolver, or try again later") {
		t.Errorf("no service: exit code %d, %q", p.Code(), rows)
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
