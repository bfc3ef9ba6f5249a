//go:build unix

package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/badservice"
)

// TestSampleBeforeBuying: plan says what a sample costs, its run asks about no
// more, and the run of the whole input does not ask about those again.
func TestSampleBeforeBuying(t *testing.T) {
	t.Parallel()
	l := profileList(1200)
	o := badservice.DefaultOptions()
	o.HonourKeys = true
	s, url := badly(t, o)
	j := newRemoteJob(t, "enrichment", url, l.csv, "--network-hosts", "network.example", "--rows-per-part", "300")
	sample := []string{"--sample", "100", "--out", j.path("sample"), "--min-rows", "1000"}
	planned := startProgram(t, append([]string{"plan"}, j.args(sample...)[1:]...)...)
	if code := planned.code(); code != cli.ExitDone || s.Seen() != 0 {
		t.Fatalf("plan ended with %d after %d calls:\n%s", code, s.Seen(), tail(planned.said.String()))
	}
	j.run(cli.ExitDone, sample...)
	bought := s.Seen()
	if bought < 50 || bought > 100 || !strings.Contains(strings.Join(strings.Fields(planned.printed.String()), " "), "calls "+strconv.Itoa(bought)) {
		t.Errorf("%d calls for a sample of 100 lines; planned:\n%s", bought, planned.printed)
	}
	some := readDataset(t, j.path("sample"))
	j.run(cli.ExitDone)
	if s.Seen() != len(l.keys) {
		t.Errorf("%d calls in all, want %d, one for each key", s.Seen(), len(l.keys))
	}
	if all := readDataset(t, j.path("out")); len(some.rows) < 90 || len(some.rows) > 100 || len(all.rows) != l.rows {
		t.Errorf("%d rows in the sample, %d in all", len(some.rows), len(all.rows))
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
		p := j.start("--sample", c.size, "--out", j.path(c.out))
		p.code()
		if said := p.said.String() + p.printed.String(); !strings.Contains(said, c.says) {
			t.Errorf("--sample %s into %s: %s", c.size, c.out, tail(said))
		}
	}
	if s.Seen() != len(l.keys) {
		t.Errorf("%d calls in all, want %d", s.Seen(), len(l.keys))
	}
}
