package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
)

// brokenPipe is standard output that cannot be written to.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("the output is gone") }

// TestStandardOutputFails: no command reports success if its output was lost.
func TestStandardOutputFails(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir+"/xdg")
	t.Setenv("LEADETL_API_KEY", "none")
	people := clitest.Samples + "/directory/people.csv"
	clitest.RunRaw(t, "directory", "import", "--directory", dir+"/dir", "--people", people)
	clitest.RunRaw(t, "run", "email_to_hem", "--in", clitest.Samples+"/emails.csv", "--out", dir+"/hems")
	clitest.RunRaw(t, "admin", "org", "create", "Org", "--credits", "5", "--state", dir+"/service")
	commands := [][]string{
		{"--version"}, {"version"}, {"--help"}, {"help", "run"}, {"run", "--help"}, {"completion", "bash"}, {"completion"}, {"directory"},
		{"schema", "email_to_hem", "--dialect", "duckdb"}, {"schema", "email_to_hem", "--dialect", "markdown"},
		{"schema", "--dataset", dir + "/hems", "--dialect", "athena", "--location", "s3://leads/b"}, {"schema", "--dataset", dir + "/hems", "--redshift-manifest", "--location", "s3://leads/b"},
		{"report", dir + "/hems"}, {"report", dir + "/hems", "--out", "-"}, {"head", dir + "/hems"}, {"head", dir + "/hems", "--json"},
		{"verify", dir + "/hems"}, {"verify", dir + "/hems", "--json"}, {"verify", dir + "/hems", "--target", "redshift"},
		{"doctor"}, {"plan", "email_to_hem", "--in", clitest.Samples + "/emails.csv", "--out", dir + "/new"}, {"plan", "email_to_hem", "--in", clitest.Samples + "/emails.csv", "--out", dir + "/new", "--json"},
		{"run", "email_to_hem", "--in", clitest.Samples + "/emails.csv", "--out", dir + "/made"}, {"run", "email_to_hem", "--in", clitest.Samples + "/emails.csv", "--out", dir + "/hems"},
		{"run", "email_to_hem", "--in", clitest.Samples + "/emails.csv", "--out", dir + "/json", "--summary-json", "-", "--quiet"},
		{"directory", "import", "--directory", dir + "/dir", "--people", people}, {"directory", "stat", "--directory", dir + "/dir"}, {"directory", "verify", "--directory", dir + "/dir"},
		{"admin", "org", "list", "--state", dir + "/service"}, {"admin", "org", "create", "Other", "--state", dir + "/service"},
		{"admin", "key", "create", "Org", "--state", dir + "/service"}, {"admin", "key", "list", "Org", "--state", dir + "/service"},
		{"admin", "credits", "list", "Org", "--state", dir + "/service"}, {"admin", "credits", "grant", "Org", "5", "--state", dir + "/service"},
		{"admin", "deliveries", "list", "--state", dir + "/service"}, {"admin", "secret", "rotate", "Org", "--state", dir + "/service"},
	}
	for _, args := range commands {
		var said, heard bytes.Buffer
		if code := program.Execute(t.Context(), args, strings.NewReader(""), brokenPipe{}, &said); code != cli.ExitFailure || !strings.Contains(said.String(), "the output is gone") {
			again := program.Execute(t.Context(), slices.Concat(args), strings.NewReader(""), &heard, &heard)
			t.Errorf("leadetl %s: exit code %d: %s\n(exit code %d where the output is heard: %s)", strings.Join(args, " "), code, &said, again, &heard)
		}
	}
}
