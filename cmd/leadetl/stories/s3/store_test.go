//go:build unix

package s3

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// TestStore tries another store than that of the other tests: LEADETL_STORE is the address of a new one, whose
// owner has the credentials of s3test. A part goes there in pieces, and the state is there, too.
func TestStore(t *testing.T) {
	address := os.Getenv("LEADETL_STORE")
	if address == "" {
		t.Skip("LEADETL_STORE names no store")
	}
	j := clitest.NewS3JobOn(t, s3test.At(t, address, clitest.S3Bucket))
	const bucket = "s3://" + clitest.S3Bucket
	if err := os.WriteFile(j.Path("in.csv"), []byte(clitest.EmailList(150_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	export := func(dataset, to string) {
		t.Helper()
		p := clitest.StartProgram(j, "export", dataset, "--out", to, "--s3-endpoint", j.Proxy.URL, "--s3-path-style")
		if got := p.Code(); got != cli.ExitDone {
			t.Fatalf("export %s to %s: exit code %d:\n%s", dataset, to, got, clitest.Tail(p.Said.String()))
		}
	}
	settings := []string{"--set", "rows_per_part=120000", "--fail-on", "never"}
	j.Run(cli.ExitDone, j.Path("in.csv"), j.Path("hems"), settings...)
	onStore := append(settings, "--state", bucket+"/state/")
	said := j.Run(cli.ExitDone, j.Path("in.csv"), bucket+"/hems/", onStore...)
	if strings.Contains(said, "does not support") {
		t.Errorf("the store is not all that it is asked for:\n%s", said)
	}
	j.Run(cli.ExitDone, j.Path("in.csv"), bucket+"/hems/", onStore...) // nothing is left to do
	verify := clitest.StartProgram(j, "verify", bucket+"/hems/", "--s3-endpoint", j.Proxy.URL, "--s3-path-style")
	if got := verify.Code(); got != cli.ExitDone {
		t.Fatalf("verify: exit code %d:\n%s", got, verify.Said.String())
	}
	export(j.Path("hems"), j.Path("want.csv"))
	export(bucket+"/hems/", bucket+"/lists/hems.csv")
	j.Run(cli.ExitDone, bucket+"/lists/*.csv", bucket+"/again/", append(onStore, "--select", "id,answers")...)
	export(bucket+"/hems/", j.Path("got.csv"))
	want, err := os.ReadFile(j.Path("want.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(j.Path("got.csv")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the dataset on the store has other rows: %v", err)
	}
}
