//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/s3test"
)

// The policy that docs/s3.md shows is what a job needs, and each word of it is
// needed.
func TestShownPolicy(t *testing.T) {
	const user, secret = "nightly", "CanaryOfTheUser00000000000000000"
	j := newS3Job(t)
	j.server.AddUser(t, user, secret)
	t.Setenv("AWS_ACCESS_KEY_ID", user)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	j.put("lists/a.csv", emailList(10))

	// run runs a job that makes use of all it is allowed: there are parts to
	// replace and to remove, and an upload to abort.
	run := func(t *testing.T) (code int, said string) {
		t.Helper()
		j.put("hems/part-00007.parquet", "left by another job")
		j.server.BeginUpload(t, s3Bucket, "hems/part-00000.parquet")
		p := startProgram(t, j.args("s3://leads/lists/**.csv", "s3://leads/hems/", "--overwrite", "--quiet")...)
		code = p.code()
		if err := os.RemoveAll(j.object("hems")); err != nil {
			t.Fatal(err)
		}
		return code, p.said.String()
	}
	policy := shownPolicy(t)
	j.server.Allow(t, s3Bucket, user, policy)
	if code, said := run(t); code != cli.ExitDone || said != "" {
		t.Fatalf("with the policy: exit code %d\n%s", code, said)
	}
	if left := j.server.Uploads(t, s3Bucket); len(left) > 0 {
		t.Errorf("unfinished uploads: %q", left)
	}
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
				j.server.Allow(t, s3Bucket, user, less)
				if _, said := run(t); !strings.Contains(said, "allow "+action+" on ") {
					t.Errorf("nothing is missed:\n%s", said)
				}
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

func shownPolicy(t *testing.T) (p s3test.Policy) {
	t.Helper()
	page, err := os.ReadFile(moduleRoot + "/docs/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```json\n")
	text, _, _ := strings.Cut(after, "```")
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}
