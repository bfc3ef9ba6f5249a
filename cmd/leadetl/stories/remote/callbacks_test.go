//go:build unix

package remote

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestRunWithCallbacks: a service that posts half of its answers later, and
// half of those twice, leaves the dataset of one that answers at once, and is
// paid for each key once.
func TestRunWithCallbacks(t *testing.T) {
	t.Parallel()
	l := clitest.ProfileList(400)
	run := func(faults badservice.Faults, flags ...string) (*clitest.Dataset, *badservice.Service, string) {
		o := badservice.DefaultOptions()
		o.Faults = faults
		service, url := clitest.StartService(t, o)
		j := clitest.NewRemoteJob(t, "network_to_phone", url, l.CSV, flags...)
		said := j.Run(cli.ExitDone).Said.String()
		for _, what := range []string{"canary", clitest.RemoteSecret} {
			if strings.Contains(strings.ToLower(said), strings.ToLower(what)) {
				t.Errorf("the log holds %q", what)
			}
		}
		return clitest.ReadDataset(t, j.Path("out")), service, j.Path("state")
	}
	want, at, _ := run(badservice.Faults{}, "--callback-url", "https://hooks.example/leads")
	got, later, state := run(badservice.Faults{Later: 0.5, Twice: 0.5, Spelled: 0.5}, "--callback-listen", "127.0.0.1:0")
	clitest.RequireSameRows(t, got, want, "resolved_at", "source", "resolution_id")
	if later.Fates()[badservice.Later] == 0 || later.Delivered() == 0 {
		t.Fatalf("nothing came later: %v, %d callbacks", later.Fates(), later.Delivered())
	}
	for key, times := range later.BilledKeys() {
		if times != 1 {
			t.Errorf("%s was paid %d times", key, times)
		}
	}
	if later.Spent() != at.Spent() {
		t.Errorf("the service was paid %d, want %d", later.Spent(), at.Spent())
	}
	if stored := storedCredits(t, state); stored != later.Spent() {
		t.Errorf("the stored answers cost %d, want %d", stored, later.Spent())
	}
}

// storedCredits adds up what stored answers cost.
func storedCredits(t *testing.T, state string) (credits int64) {
	t.Helper()
	contents, err := wire.ReadAnswers(t.Context(), wire.Answers(state), state)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := contents.Stat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tally := range stat.Tallies {
		credits += tally.Credits
	}
	if err := contents.Close(); err != nil {
		t.Error(err)
	}
	return credits
}
