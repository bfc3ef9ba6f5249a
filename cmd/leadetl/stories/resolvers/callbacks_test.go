//go:build unix

package resolvers

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestCallbacks: two services post half of their answers later, to one listener. Each key is paid
// once at each, and every answer is in its row.
func TestCallbacks(t *testing.T) {
	t.Setenv("LEADETL_CALLBACK_SECRET", clitest.RemoteSecret)
	x := newOrder(t, profiles(60))
	x.starts(badservice.DefaultProvider("unused")) // the job names a file of entries
	x.job = "operation: network_to_phone\nnetwork_hosts: [network.example]\n"
	var services []*badservice.Service
	for _, name := range []string{"one", "two"} {
		o := badservice.DefaultOptions()
		o.Matched, o.Faults = 0.5, badservice.Faults{Later: 0.5, Twice: 0.5}
		s, url := clitest.StartService(t, o)
		services = append(services, s)
		x.resolvers = append(x.resolvers, url+": {key_file: ./key, name: "+name+"}")
	}
	if said := x.run(cli.ExitUsage); !strings.Contains(said, "network_to_phone needs an address for callbacks: name one with --callback-url, or listen with --callback-listen") {
		t.Errorf("without an address it says %s", said)
	}
	x.run(cli.ExitDone, "--callback-listen", "127.0.0.1:0")
	got := clitest.ReadDataset(t, x.path("out"))
	matched := got.Count(t, "outcome", "matched")
	for i, s := range services {
		if s.Delivered() == 0 {
			t.Errorf("service %d posted nothing", i)
		}
		requireOnce(t, "a service", ledgerOf(s))
	}
	if matched+got.Count(t, "outcome", "no_match") != 60 || matched == 0 {
		t.Errorf("%d of 60 rows are matched, the others have no answer", matched)
	}
	if first, second := got.Count(t, "answered_by", "one"), got.Count(t, "answered_by", "two"); first+second != matched || first == 0 {
		t.Errorf("%d rows are answered by one, %d by two, of %d", first, second, matched)
	}
}
