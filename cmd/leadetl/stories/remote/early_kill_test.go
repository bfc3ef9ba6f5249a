package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestKilledBeforeTheFirstCommit: a kill while a state was made leaves one without answers. A run
// uses it, and what only reads says that it has none.
func TestKilledBeforeTheFirstCommit(t *testing.T) {
	t.Parallel()
	o := badservice.DefaultOptions()
	o.Matched = 1
	_, url := clitest.StartService(t, o)
	for name, files := range map[string]map[string]string{
		"an empty state":                 nil,
		"an empty folder of answers":     {"answers/": ""},
		"a manifest that was not synced": {"answers/.manifest-0000000001.copy.tmp": ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(3), "--max-credits", "10", "--idempotent")
			state := j.Path("state")
			if err := os.Mkdir(state, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, text := range files {
				err := os.MkdirAll(filepath.Join(state, filepath.Dir(file)), 0o700)
				if err == nil && !strings.HasSuffix(file, "/") {
					err = os.WriteFile(filepath.Join(state, file), []byte(text), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{{"answers", "stat", "--state", state}, {"cost", state}} {
				p := clitest.StartProgram(t, args...)
				if code := p.Code(); code != cli.ExitUsage || !strings.Contains(p.Said.String(), "stored answers") {
					t.Errorf("%s ends with %d: %s", args[0], code, p.Said)
				}
			}
			plan := clitest.StartProgram(t, append([]string{"plan"}, j.Args()[1:]...)...)
			if code := plan.Code(); code != cli.ExitDone {
				t.Errorf("plan ends with %d: %s", code, plan.Said)
			}
			j.Run(cli.ExitDone)
		})
	}
}
