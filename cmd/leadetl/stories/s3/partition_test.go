//go:build unix

package s3

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// TestS3PartedRows: rows that are parted by a column come out on S3 as they do
// on the disk, byte for byte, are found there again, and are proved.
func TestS3PartedRows(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	if err := os.WriteFile(j.Path("in.csv"), []byte(clitest.Landed(clitest.EmailList(3000))), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--partition-by", "dt=2026-11-20,land", "--set", "rows_per_part=1000"}
	out := "s3://" + clitest.S3Bucket + "/lake"
	j.Run(cli.ExitDone, j.Path("in.csv"), j.Path("lake"), flags...)
	j.Run(cli.ExitDone, j.Path("in.csv"), out, flags...)
	want := clitest.Files(t, j.Path("lake/dt=2026-11-20"))
	clitest.RequireFiles(t, "disk → S3", clitest.Files(t, j.Object("lake/dt=2026-11-20")), want)
	if len(want) != 3*4+2 {
		t.Errorf("%d files, of 4 values, a part with rejects, and _SUCCESS", len(want))
	}

	// A finished dataset is found finished.
	writes := 0
	j.Proxy.Do(func(r *http.Request) s3test.Fault {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && strings.Contains(r.URL.Path, "part-") {
			writes++
		}
		return s3test.Fault{}
	})
	if said := j.Run(cli.ExitDone, j.Path("in.csv"), out, flags...); writes > 0 || strings.Contains(said, "WARN") {
		t.Errorf("the second time: %d writes of parts\n%s", writes, said)
	}
	look := func(want int, args ...string) string {
		t.Helper()
		p := clitest.StartProgram(j, clitest.OnStore(j.Proxy.URL, args...)...)
		if got := p.Code(); got != want {
			t.Fatalf("%s ended with exit code %d, want %d:\n%s", args[0], got, want, clitest.Tail(p.Said.String()))
		}
		return p.Said.String()
	}
	dataset := out + "/dt=2026-11-20"
	look(cli.ExitDone, "verify", dataset)
	if said := look(cli.ExitDone, "verify", out); !strings.Contains(said, `night="dt=2026-11-20" others=none`) {
		t.Errorf("of a folder of nights, verify says\n%s", said)
	}
	look(cli.ExitDone, "schema", "--dataset", dataset, "--dialect", "spark")
	j.Put("lake/dt=2026-11-20/land=US/part-00077.parquet", "stranger")
	if said := look(cli.ExitRejects, "verify", dataset); !strings.Contains(said, ": 1 issue found") {
		t.Errorf("verify says\n%s", said)
	}
}
