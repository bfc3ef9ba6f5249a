//go:build unix

package remote

import (
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
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// sampleDays are the flags by which the sample's searches are found.
var sampleDays = []string{"--as-of", "2026-11-15", "--select", "id,answers"}

// A service that answers from a directory finds what the engine finds in it:
// also when it makes no more than five pages at a time.
func TestSearchesOfServe(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(p.Customer("Example Rockets", "2500")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.Serve("--limit-create", "0", "--limit-result", "0")
	list, err := os.ReadFile(filepath.Join(clitest.Samples, "searches.csv"))
	if err != nil {
		t.Fatal(err)
	}
	spent := 0
	for operation, lead := range map[string][]string{"keyword_to_lead": {"lead_id"}, "keyword_to_lead_count": nil} {
		j := clitest.NewRemoteJob(t, operation, s.Public, string(list), append([]string{"--api-key-file", key}, sampleDays...)...)
		j.Run(cli.ExitDone)
		got := clitest.ReadDataset(t, j.Path("out"))
		local := append([]string{"run", operation, "--in", j.Path("in.csv"), "--out", j.Path("local"), "--state", j.Path("state"), "--directory", p.Directory}, sampleDays...)
		clitest.Run(t, local...)
		clitest.RequireSameRows(t, got, clitest.ReadDataset(t, j.Path("local")), "resolved_at", "resolution_id", "answered_by", "credits")
		j.Run(cli.ExitDone, "--offline", "--out", j.Path("again"))
		clitest.RequireSameFiles(t, j.Path("again"), j.Path("out"))
		spent += got.Paid(t, lead...)
	}
	balance := strings.Fields(p.Admin("org", "list"))
	if left := figures.Grouped(int64(2500 - spent)); !slices.Contains(balance, left) || spent < 50 {
		t.Errorf("the rows cost %d credits, and of 2500 there are left: %q", spent, balance)
	}
}

// TestRemoteSearchesKilled is TestRemoteKilled of searches, which are made a
// page at a time, and later than they are asked for.
func TestRemoteSearchesKilled(t *testing.T) {
	t.Parallel()
	testRemoteSearchesKilled(t, clitest.InFolder, 3)
}

// TestRemoteSearchesKilledOnS3 is that with the state on S3.
func TestRemoteSearchesKilledOnS3(t *testing.T) {
	t.Parallel()
	testRemoteSearchesKilled(t, clitest.OnS3(t), 3)
}

func testRemoteSearchesKilled(t *testing.T, keep clitest.Keeper, short int) {
	kills := min(clitest.KillsWanted(t, short), 40)
	searches := 20
	if kills > short {
		searches = 40
	}
	var b strings.Builder
	b.WriteString("id,keywords,states,limit,deanonymize\n")
	for i := range searches {
		fmt.Fprintf(&b, "%d,canary %d;bird,CA,%d,%t\n", i, i%(searches-3), 15+i%20, i%3 == 0) // some of them duplicates
	}
	flags := []string{"--as-of", "2026-11-15", "--set", "rows_per_part=10", "--workers", "2", "--concurrency", "16", "--set", "timeout=1s", "--set", "give_up_after=1m"}

	undisturbed, url := clitest.StartService(t, badservice.DefaultOptions())
	good := clitest.NewRemoteJob(t, "keyword_to_lead", url, b.String(), append(flags, patient...)...)
	good.Run(cli.ExitDone)

	o := badservice.DefaultOptions()
	o.HonourKeys, o.Polls, o.Latency, o.Faults = true, 1, 3*time.Millisecond, badservice.Storm()
	o.Faults.Later, o.Faults.Twice = 0, 0 // there is no listener for callbacks
	s, url := clitest.StartService(t, o)
	j := clitest.NewRemoteJob(t, "keyword_to_lead", url, b.String(), append(flags, "--idempotent")...)
	keep(j)
	random := rand.New(rand.NewPCG(remoteKillSeed, 2))
	pages, hits := len(undisturbed.BilledKeys()), 0
	for rounds := 0; hits < kills && rounds < 3*kills; rounds++ {
		until, p := s.Seen()+random.IntN(2+3*pages/kills), j.Start()
		look := time.NewTicker(time.Millisecond)
		for s.Seen() < until && !p.Ended() {
			<-look.C
		}
		look.Stop()
		if p.Kill() {
			hits++
		}
	}
	if hits < kills {
		t.Errorf("%d kills hit, want %d", hits, kills)
	}
	j.Run(cli.ExitDone)
	t.Logf("%d kills hit, %d pages; %v", hits, pages, s.Fates())

	got := clitest.ReadDataset(t, j.Path("out"))
	clitest.RequireSameRows(t, got, clitest.ReadDataset(t, good.Path("out")), "resolved_at", "source")
	requirePaidOnce(t, s, undisturbed)
	if left := j.Unknown(); len(left) > 0 {
		t.Errorf("%d calls are unknown still", len(left))
	}
	requireFates(t, s, badservice.Answered, badservice.Replayed, badservice.Unavailable, badservice.Failed, badservice.ResetAfter, badservice.Truncated)
	j.Flags = slices.DeleteFunc(j.Flags, func(flag string) bool { return flag == "--idempotent" })
	j.Run(cli.ExitDone, "--out", j.Path("again"), "--offline")
	clitest.RequireSameFiles(t, j.Path("again"), j.Path("out"))
	for _, name := range []string{"_manifest.json", "_report.json", "_report.html"} {
		if text, err := os.ReadFile(j.Path("out/" + name)); err != nil || strings.Contains(string(text), "canary") {
			t.Errorf("%s tells what was searched for, or %v", name, err)
		}
	}
}
