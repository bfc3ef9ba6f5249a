//go:build unix

package cluster

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/temporaltest"
)

// TestClusterTryScript runs deploy/try-workers.sh: a run that succeeds, one that
// fails with the exit code of the run, and one whose port is in use.
func TestClusterTryScript(t *testing.T) {
	program := temporaltest.Program(t)
	j := clitest.NewS3Job(t)
	j.Put("in/list.csv", clitest.EmailList(500))
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "temporal")); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(temporaltest.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	try := func(port string, args ...string) (int, string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), filepath.Join(clitest.ModuleRoot, "deploy/try-workers.sh"), append([]string{"email_to_hem"}, args...)...)
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+bin, "TEMPORAL_PORT="+port, "TEMPORAL_ADDRESS=nowhere.example:1",
			"LEADETL_S3_ENDPOINT="+j.Proxy.URL, "LEADETL_S3_PATH_STYLE=true")
		said, err := c.CombinedOutput()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), string(said)
	}
	in, state := "s3://"+clitest.S3Bucket+"/in/", "s3://"+clitest.S3Bucket+"/state/"
	if code, said := try(port, "--in", in, "--out", "s3://"+clitest.S3Bucket+"/out/", "--state", state); code != cli.ExitDone || !strings.Contains(said, "workers") || strings.Contains(said, "error") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if code, said := try(port, "--in", in, "--out", "s3://"+clitest.S3Bucket+"/out/"); code != cli.ExitUsage || !strings.Contains(said, "--state") {
		t.Errorf("without --state: exit code %d:\n%s", code, said)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, used, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if code, said := try(used, "--in", in, "--out", "s3://"+clitest.S3Bucket+"/out/", "--state", state); code != 1 || !strings.Contains(said, "is port "+used+" in use?") {
		t.Errorf("a port in use: exit code %d:\n%s", code, said)
	}
}
