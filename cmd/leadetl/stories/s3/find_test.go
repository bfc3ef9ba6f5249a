//go:build unix

package s3

import (
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestS3Find: who is in a dataset and in nights on S3 is found there, and not after the commands that it prints.
func TestS3Find(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	bucket := "s3://" + clitest.S3Bucket
	for name, text := range map[string]string{"in.csv": clitest.EmailList(200) + "7000,canary@mail.example\n", "who.txt": "Canary@mail.example\n"} {
		if err := os.WriteFile(j.Path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	j.Run(cli.ExitDone, j.Path("in.csv"), bucket+"/hems", "--fail-on", "never", "--state", bucket+"/state/")
	j.Run(cli.ExitDone, j.Path("in.csv"), bucket+"/nights/", "--partition-by", "dt=2026-11-29", "--fail-on", "never", "--state", bucket+"/state/")
	execute := func(args ...string) string {
		t.Helper()
		p := clitest.StartProgram(j, args...)
		if got := p.Code(); got != cli.ExitDone {
			t.Fatalf("%q ended with exit code %d:\n%s", args, got, clitest.Tail(p.Said.String()))
		}
		return p.Printed.String() + p.Said.String()
	}
	find := func() string {
		t.Helper()
		said := execute("find", "--file", j.Path("who.txt"), "--state", bucket+"/state/", bucket+"/hems/", bucket+"/nights/", "--s3-endpoint", j.Proxy.URL, "--s3-path-style")
		if strings.Contains(strings.ToLower(said), "canary") {
			t.Errorf("somebody is named:\n%s", said)
		}
		return said
	}
	said := find()
	if !strings.Contains(said, "1 of 1 line found, in 2 of 3 places\n") {
		t.Errorf("find says\n%s", said)
	}
	for line := range strings.Lines(said) {
		if command, is := strings.CutPrefix(strings.TrimSpace(line), "leadetl run "); is {
			execute(append([]string{"run"}, strings.Fields(command+" --state "+bucket+"/state/")...)...)
		}
	}
	if said := find(); !strings.Contains(said, "0 of 1 line found, in 0 of 3 places\n") {
		t.Errorf("after the removal find says\n%s", said)
	}
}
