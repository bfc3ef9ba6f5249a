//go:build unix

package s3

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestPlanOn: a plan of a run on workers reads the input itself, and asks no
// Temporal server. Nothing is left on S3.
func TestPlanOn(t *testing.T) {
	t.Parallel()
	j := clitest.NewS3Job(t)
	j.Put("in/list.csv", clitest.EmailList(900))
	bucket := "s3://" + clitest.S3Bucket
	j.Put("nightly.yaml", "operation: email_to_hem\nin: "+bucket+"/in/\nout: "+bucket+"/out/\nstate: "+bucket+"/state/\n"+
		"on: temporal://127.0.0.1:1/leads\nlost_after: 10s\ns3_path_style: true\n")
	got := clitest.Run(t, "plan", "--job", j.Object("nightly.yaml"), "--set", "s3_endpoint="+j.Proxy.URL)
	alone := clitest.Run(t, "plan", "email_to_hem", "--in", bucket+"/in/", "--out", bucket+"/out/", "--set", "s3_endpoint="+j.Proxy.URL, "--set", "s3_path_style=true", "--state", j.Path("state"))
	if got != alone || !strings.Contains(got, "900") {
		t.Errorf("the plan of a run on workers is\n%s\nwant\n%s", got, alone)
	}
	if left := clitest.Files(t, j.Object("")); len(left) != 2 {
		t.Errorf("%d objects, want the input and the job file", len(left))
	}
}
