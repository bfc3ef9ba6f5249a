package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
)

// TestS3Variables: every command that reaches S3 reads the variables of its settings, with a job or without.
func TestS3Variables(t *testing.T) {
	const dataset, state = "s3://leads/out/", "--state s3://leads/state/"
	const job = "email_to_hem --in s3://leads/in/ --out s3://leads/out/ " + state
	emails := clitest.Samples + "/emails.csv"
	given := map[string]string{
		"run": job, "plan": job, "survey": job, "part": job, "finish": job, "doctor": state,
		"serve": "--directory d", "provider try": "hunter --in " + emails + " " + state, "answers compact": state, "answers stat": state, "answers list": state, "answers runs": state,
		"answers copy": "s3://leads/a/ s3://leads/b/", "answers import": os.DevNull + " " + state, "answers export": "--out a.jsonl " + state,
		"answers forget": "--in " + emails + " " + state, "find": "--file " + emails + " " + state, "changes": dataset + " s3://leads/new/ --out changes", "schema": "--dialect duckdb --dataset " + dataset,
		"report": dataset + " --out report.html", "export": dataset + " --out leads.csv", "directory import": "--directory d --people s3://leads/people/", "worker": "--on temporal://127.0.0.1:1/leads",
	}
	t.Setenv("LEADETL_S3_GIVE_UP_AFTER", "0s")
	for _, c := range all(program.NewRoot(cli.Streams{})) {
		path := strings.TrimPrefix(c.CommandPath(), "leadetl ")
		args, hasJob := given[path]
		if !hasJob && c.Flags().Lookup("s3-give-up-after") == nil {
			continue
		}
		if args == "" {
			args = dataset
		}
		t.Run(path, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			var out, said bytes.Buffer
			code := program.Execute(t.Context(), append(strings.Fields(path), strings.Fields(args)...), strings.NewReader(""), &out, &said)
			if code != cli.ExitUsage || !strings.Contains(said.String(), "s3_give_up_after is 0s") {
				t.Errorf("exit code %d: %s%s", code, &out, &said)
			}
		})
	}
}
