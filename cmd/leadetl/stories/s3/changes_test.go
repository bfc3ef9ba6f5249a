//go:build unix

package s3

import (
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestS3Changes: what differs between two nights on S3 has the bytes that it has on the disk,
// whether a job writes it or leadetl changes, and is checked there.
func TestS3Changes(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	list := clitest.EmailList(2000)
	head, rest, _ := strings.Cut(list, "\n")
	for name, text := range map[string]string{"0.csv": list, "1.csv": head + "\nnew,new@fresh.example\n" + rest[strings.Index(rest, "\n")+1:]} {
		if err := os.WriteFile(j.Path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lake, state := "s3://"+clitest.S3Bucket+"/lake", "s3://"+clitest.S3Bucket+"/state/"
	for _, night := range []string{"0", "1"} {
		flags := []string{"--partition-by", "dt=2026-11-2" + night, "--set", "rows_per_part=900", "--changes-from", "previous", "--fail-on", "never"}
		j.Run(cli.ExitDone, j.Path(night+".csv"), j.Path("lake"), flags...)
		j.Run(cli.ExitDone, j.Path(night+".csv"), lake, append(flags, "--state", state)...)
		clitest.RequireFiles(t, "disk → S3", clitest.Files(t, j.Object("lake/dt=2026-11-2"+night)), clitest.Files(t, j.Path("lake/dt=2026-11-2"+night)))
	}
	made := j.Object("lake/dt=2026-11-21/_changes/part-00000.parquet")
	look := func(want int, args ...string) string {
		t.Helper()
		p := clitest.StartProgram(j, clitest.OnStore(j.Proxy.URL, args...)...)
		if got := p.Code(); got != want {
			t.Fatalf("%s ended with exit code %d, want %d:\n%s", args[0], got, want, clitest.Tail(p.Said.String()))
		}
		return p.Said.String()
	}
	look(cli.ExitDone, "verify", lake+"/dt=2026-11-21")
	out := "s3://" + clitest.S3Bucket + "/diff/"
	look(cli.ExitDone, "changes", lake+"/dt=2026-11-20", lake+"/dt=2026-11-21", "--out", out, "--verify")
	want, err := os.ReadFile(made)
	got, failed := os.ReadFile(j.Object("diff/part-00000.parquet"))
	if err != nil || failed != nil || string(got) != string(want) {
		t.Errorf("the job and leadetl changes write other bytes: %v, %v", err, failed)
	}
	if said := look(cli.ExitUsage, "changes", lake+"/dt=2026-11-20", lake, "--out", out); !strings.Contains(said, "no dataset") {
		t.Errorf("changes says\n%s", said)
	}
}
