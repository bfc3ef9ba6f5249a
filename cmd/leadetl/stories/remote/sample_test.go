//go:build unix

package remote

import (
	"strconv"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestSampleBeforeBuying: plan says what a sample costs, its run asks about no
// more, and the run of the whole input does not ask about those again.
func TestSampleBeforeBuying(t *testing.T) {
	t.Parallel()
	l := clitest.ProfileList(1200)
	o := badservice.DefaultOptions()
	o.HonourKeys = true
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "enrichment", url, l.CSV, "--set", "network_hosts=network.example", "--set", "rows_per_part=300")
	sample := []string{"--sample", "100", "--out", j.Path("sample"), "--set", "min_rows=1000"}
	planned := clitest.StartProgram(t, append([]string{"plan"}, j.Args(sample...)[1:]...)...)
	if code := planned.Code(); code != cli.ExitDone || s.Seen() != 0 {
		t.Fatalf("plan ended with %d after %d calls:\n%s", code, s.Seen(), clitest.Tail(planned.Said.String()))
	}
	j.Run(cli.ExitDone, sample...)
	bought := s.Seen()
	if bought < 50 || bought > 100 || !strings.Contains(strings.Join(strings.Fields(planned.Printed.String()), " "), "calls "+strconv.Itoa(bought)) {
		t.Errorf("%d calls for a sample of 100 lines; planned:\n%s", bought, planned.Printed)
	}
	some := clitest.ReadDataset(t, j.Path("sample"))
	j.Run(cli.ExitDone)
	if s.Seen() != len(l.Keys) {
		t.Errorf("%d calls in all, want %d, one for each key", s.Seen(), len(l.Keys))
	}
	if all := clitest.ReadDataset(t, j.Path("out")); len(some.Rows) < 90 || len(some.Rows) > 100 || len(all.Rows) != l.Rows {
		t.Errorf("%d rows in the sample, %d in all", len(some.Rows), len(all.Rows))
	}

	// Interrupted or not, the sample is a dataset of its own, and of one size.
	for _, c := range []struct {
		out, size, says string
	}{
		{"sample", "100", "nothing to do"},
		{"sample", "50", "--sample was 100 and is 50"},
		{"out", "100", "--sample was not set and is 100"},
		{"new", "100001", "--sample is 100001; it is a number of lines from 1 to 100,000"},
	} {
		p := j.Start("--sample", c.size, "--out", j.Path(c.out))
		p.Code()
		if said := p.Said.String() + p.Printed.String(); !strings.Contains(said, c.says) {
			t.Errorf("--sample %s into %s: %s", c.size, c.out, clitest.Tail(said))
		}
	}
	if s.Seen() != len(l.Keys) {
		t.Errorf("%d calls in all, want %d", s.Seen(), len(l.Keys))
	}
}
