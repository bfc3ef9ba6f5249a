//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestPlanOn: a plan of a run on workers reads the input itself, and asks no
// Temporal server. Nothing is left on S3.
func TestPlanOn(t *testing.T) {
	t.Parallel()
	j := newS3Job(t)
	j.put("in/list.csv", emailList(900))
	bucket := "s3://" + s3Bucket
	j.put("nightly.yaml", "operation: email_to_hem\nin: "+bucket+"/in/\nout: "+bucket+"/out/\nstate: "+bucket+"/state/\n"+
		"on: temporal://127.0.0.1:1/leads\nlost_after: 10s\ns3_path_style: true\n")
	got := leadetl(t, "plan", "--job", j.object("nightly.yaml"), "--s3-endpoint", j.proxy.URL)
	alone := leadetl(t, "plan", "email_to_hem", "--in", bucket+"/in/", "--out", bucket+"/out/", "--s3-endpoint", j.proxy.URL, "--s3-path-style", "--state", j.path("state"))
	if got != alone || !strings.Contains(got, "900") {
		t.Errorf("the plan of a run on workers is\n%s\nwant\n%s", got, alone)
	}
	if left := files(t, j.object("")); len(left) != 2 {
		t.Errorf("%d objects, want the input and the job file", len(left))
	}
}
