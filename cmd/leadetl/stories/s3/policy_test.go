//go:build unix

package s3

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// deploy/s3-policy.json is what a job needs, and each word of it is
// needed.
func TestShownPolicy(t *testing.T) {
	const user, secret = "nightly", "CanaryOfTheUser00000000000000000"
	j := clitest.NewS3Job(t)
	j.Server.AddUser(t, user, secret)
	t.Setenv("AWS_ACCESS_KEY_ID", user)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	j.Put("lists/a.csv", clitest.EmailList(100))

	// run runs a job that makes use of all it is allowed: there are parts to
	// replace and to remove, and an upload to abort.
	run := func(t *testing.T) (code int, said string) {
		t.Helper()
		j.Put("hems/part-00007.parquet", "left by another job")
		j.Server.BeginUpload(t, clitest.S3Bucket, "hems/part-00000.parquet")
		p := clitest.StartProgram(t, j.Args("s3://leads/lists/**.csv", "s3://leads/hems/", "--overwrite", "--quiet")...)
		code = p.Code()
		if err := os.RemoveAll(j.Object("hems")); err != nil {
			t.Fatal(err)
		}
		return code, p.Said.String()
	}
	policy := policyOf(t, "s3-policy.json")
	j.Server.Allow(t, clitest.S3Bucket, user, policy)
	if code, said := run(t); code != cli.ExitDone || said != "" {
		t.Fatalf("with the policy: exit code %d\n%s", code, said)
	}
	if left := j.Server.Uploads(t, clitest.S3Bucket); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
	eachLess(t, policy, func(t *testing.T, less s3test.Policy, action string) {
		j.Server.Allow(t, clitest.S3Bucket, user, less)
		if _, said := run(t); !strings.Contains(said, "allow "+action+" on ") {
			t.Errorf("nothing is missed:\n%s", said)
		}
	})
}

// deploy/s3-policy-state.json is what a run needs, with all its
// calls and answers there, and each word of it is needed.
func TestShownPolicyOfState(t *testing.T) {
	const user, secret = "nightly", "CanaryOfTheUser00000000000000000"
	s, url := clitest.StartService(t, badservice.DefaultOptions())
	s3 := clitest.NewS3Job(t)
	s3.Server.AddUser(t, user, secret)
	j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(20), "--quiet", "--set", "s3_give_up_after=2s")
	j.State, j.Store = []string{"--state", "s3://leads/state/"}, s3.Proxy.URL
	t.Setenv("AWS_ACCESS_KEY_ID", user)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	policy := policyOf(t, "s3-policy-state.json")
	run := func() (code int, said string) {
		p := j.Start("--overwrite")
		code = p.Code()
		if err := os.RemoveAll(s3.Object("state")); err != nil {
			t.Fatal(err)
		}
		return code, p.Said.String()
	}
	s3.Server.Allow(t, clitest.S3Bucket, user, policy)
	if code, said := run(); code != cli.ExitDone || said != "" || s.Seen() != 20 {
		t.Fatalf("with the policy: exit code %d, %d calls\n%s", code, s.Seen(), said)
	}
	eachLess(t, policy, func(t *testing.T, less s3test.Policy, action string) {
		if action == "s3:AbortMultipartUpload" {
			return // only where an upload of a file above 8 MiB fails
		}
		s3.Server.Allow(t, clitest.S3Bucket, user, less)
		if code, said := run(); code != cli.ExitUsage || !strings.Contains(said, "allow "+action+" on ") {
			t.Errorf("exit code %d, and nothing is missed:\n%s", code, said)
		}
	})
}

// eachLess calls do with a policy without one of its actions, for each of them.
func eachLess(t *testing.T, policy s3test.Policy, do func(t *testing.T, less s3test.Policy, action string)) {
	for i, statement := range policy.Statement {
		for _, action := range actions(statement) {
			t.Run(strings.TrimPrefix(statement.Resource, "arn:aws:s3:::")+" without "+action, func(t *testing.T) {
				less := s3test.Policy{Version: policy.Version}
				for k, other := range policy.Statement {
					var kept []string
					for _, a := range actions(other) {
						if k != i || a != action {
							kept = append(kept, a)
						}
					}
					if len(kept) > 0 {
						other.Action = kept
						less.Statement = append(less.Statement, other)
					}
				}
				do(t, less, action)
			})
		}
	}
}

// actions are those of a statement, which may be written as one.
func actions(s s3test.Statement) (all []string) {
	if one, single := s.Action.(string); single {
		return []string{one}
	}
	for _, a := range s.Action.([]any) {
		all = append(all, a.(string))
	}
	return all
}

// policyOf returns a policy of deploy.
func policyOf(t *testing.T, name string) (p s3test.Policy) {
	t.Helper()
	text, err := os.ReadFile(clitest.ModuleRoot + "/deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}
