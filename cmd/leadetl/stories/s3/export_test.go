//go:build unix

package s3

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestS3Export: a dataset on S3 is exported to S3, and refused where something is.
func TestS3Export(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	if err := os.WriteFile(j.Path("in.csv"), []byte(clitest.EmailList(2000)), 0o644); err != nil {
		t.Fatal(err)
	}
	bucket := "s3://" + clitest.S3Bucket
	j.Run(cli.ExitDone, j.Path("in.csv"), j.Path("hems"), "--set", "rows_per_part=900", "--fail-on", "never")
	j.Run(cli.ExitDone, j.Path("in.csv"), bucket+"/hems", "--set", "rows_per_part=900", "--fail-on", "never", "--state", bucket+"/state/")
	export := func(want int, args ...string) string {
		t.Helper()
		p := clitest.StartProgram(j, append([]string{"export"}, append(args, "--s3-endpoint", j.Proxy.URL, "--s3-path-style")...)...)
		if got := p.Code(); got != want {
			t.Fatalf("%q ended with exit code %d, want %d:\n%s", args, got, want, clitest.Tail(p.Said.String()))
		}
		return p.Said.String()
	}
	export(cli.ExitDone, j.Path("hems"), "--out", j.Path("want.csv"))
	export(cli.ExitDone, bucket+"/hems/", "--out", bucket+"/files/hems.csv")
	export(cli.ExitDone, bucket+"/hems/", "--out", bucket+"/parts/", "--rows-per-file", "700")
	want, err := os.ReadFile(j.Path("want.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(j.Object("files/hems.csv")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file on S3 has other bytes: %v", err)
	}
	header, rows, _ := bytes.Cut(want, []byte("\n"))
	var joined []byte
	for i := range 3 {
		part, err := os.ReadFile(j.Object(fmt.Sprintf("parts/export-%05d.csv", i)))
		if err != nil {
			t.Fatal(err)
		}
		of, rest, _ := bytes.Cut(part, []byte("\n"))
		if !bytes.Equal(of, header) {
			t.Errorf("file %d begins with %q", i, of)
		}
		joined = append(joined, rest...)
	}
	if !bytes.Equal(joined, rows) {
		t.Error("the files of the folder have other rows")
	}
	if _, err := os.Stat(j.Object("parts/_SUCCESS")); err != nil {
		t.Error(err)
	}
	for _, out := range []string{"/parts/", "/files/hems.csv"} {
		if said := export(cli.ExitUsage, bucket+"/hems/", "--out", bucket+out); !strings.Contains(said, "there already") {
			t.Errorf("%s: %s", out, said)
		}
		export(cli.ExitDone, bucket+"/hems/", "--out", bucket+out, "--overwrite", "--quiet")
	}
	if said := export(cli.ExitUsage, bucket+"/hems/", "--out", bucket+"/hems/x.csv"); !strings.Contains(said, "is in the dataset") {
		t.Error(said)
	}
}

// TestExportKilled: _SUCCESS is only beside all files, and a killed export begins anew.
func TestExportKilled(t *testing.T) {
	t.Parallel()
	kills := clitest.KillsWanted(t, 5)
	dir := t.TempDir()
	in, hems, want, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "hems"), filepath.Join(dir, "want"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(clitest.EmailList(30_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	clitest.RunRaw(t, "run", "email_to_hem", "--in", in, "--out", hems, "--quiet", "--fail-on", "never")
	export := func(to string) []string {
		return []string{"export", hems, "--out", to, "--rows-per-file", "250", "--format", "csv.gz", "--overwrite", "--quiet"}
	}
	began := time.Now()
	if code := clitest.StartProgram(t, export(want)...).Code(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	whole := time.Since(began)
	undisturbed := clitest.Files(t, want)
	for hits := 0; hits < kills && !t.Failed(); {
		p := clitest.StartProgram(t, export(out)...)
		time.Sleep(time.Duration(rand.Int64N(int64(whole))))
		if p.Kill() {
			hits++
		}
		if _, err := os.Stat(filepath.Join(out, "_SUCCESS")); err == nil {
			clitest.RequireFiles(t, "killed after _SUCCESS", clitest.Files(t, out), undisturbed)
		}
	}
	clitest.RunRaw(t, export(out)...)
	clitest.RequireFiles(t, "after kills", clitest.Files(t, out), undisturbed)
	entries, err := os.ReadDir(out)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("temporary files are left: %v, %v", entries, err)
	}
}
