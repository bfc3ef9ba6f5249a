//go:build linux

package remote

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestPlanBesideReadOnlyState: a plan reads a state that cannot be written to, after a kill too, and
// has the figures that it has elsewhere.
func TestPlanBesideReadOnlyState(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--mount", "--map-root-user", "sh", "-c", "mount --bind /tmp /mnt").CombinedOutput(); err != nil {
		t.Skipf("no mounts: %v %s", err, out)
	}
	s, url := clitest.StartService(t, badservice.DefaultOptions())
	j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(400))
	p := j.Start("--rate", "200/s")
	for s.Seen() < 100 && !p.Ended() {
		time.Sleep(time.Millisecond)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Code()
	program, err := exec.LookPath("leadetl")
	if err != nil {
		t.Fatal(err)
	}
	plan := append([]string{"plan"}, j.Args("--json")[1:]...)
	script := `mount --bind "$STATE" "$STATE" && mount -o remount,ro,bind "$STATE" && exec "$@"`
	c := exec.Command("unshare", append([]string{"--mount", "--map-root-user", "sh", "-c", script, "sh", program}, plan...)...)
	c.Env = append(os.Environ(), "GORACE="+clitest.Hasty, "STATE="+j.Path("state"))
	got, _ := c.Output()
	same := exec.Command(program, plan...)
	want, _ := same.Output()
	if code := c.ProcessState.ExitCode(); code != same.ProcessState.ExitCode() || string(got) != string(want) || !strings.Contains(string(want), `"stored"`) {
		t.Errorf("it ends with %d and says\n%s\nwant %d and\n%s", code, got, same.ProcessState.ExitCode(), want)
	}
}
