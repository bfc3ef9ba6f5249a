//go:build unix

package resolvers

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestDoctor checks each resolver of an order, and asks nothing that costs something.
func TestDoctor(t *testing.T) {
	t.Setenv("LEADETL_KEY_ACME", "")
	service, url := clitest.StartService(t, badservice.DefaultOptions())
	x := newOrder(t, profiles(3))
	x.resolvers = []string{"directory: ./own", "acme", url + ": {key_file: ./key, name: leads}"}
	acme := x.starts(badservice.DefaultProvider("acme"))
	x.owns(1)
	says := func(want int, lines ...string) {
		t.Helper()
		said := x.executes(want, x.args("doctor")...)
		flat := strings.Join(strings.Fields(said), " ")
		for _, line := range lines {
			if !strings.Contains(flat, line) {
				t.Errorf("doctor does not say %q:\n%s", line, said)
			}
		}
	}
	says(cli.ExitUsage, "embedded ok "+x.path("own"), "acme ok http://127.0.0.1:", "API key of acme - given; not checked", "leads failed "+url+" answers, but does not look like a Lead Resolution Service; check its address", "clock ok as acme has it")
	x.write("key", "")
	says(cli.ExitUsage, "API key of acme failed", x.path("key")+" is empty; write the API key for resolver acme to it",
		"leads - is not asked without an API key", "API key of leads failed key_file: ")
	x.write("key", clitest.RemoteKey)
	x.resolvers = x.resolvers[:2]
	says(cli.ExitDone, "acme ok http://127.0.0.1:")
	x.resolvers[1] = "acme: {key_file: ./key, max_credits: 0}"
	says(cli.ExitDone, "budget - max_credits of acme is not enough: the run would stop")
	x.resolvers[1] = "acme"
	if err := acme.Stop(); err != nil {
		t.Fatal(err)
	}
	says(cli.ExitTryAgain, "acme failed http://127.0.0.1:", "check base in its entry, or try again later")
	x.resolvers[1] = "acmee: {key_file: ./key}"
	says(cli.ExitUsage, "acmee failed", "there is no provider acmee")
	if asked := len(acme.Ledger()) + service.Seen(); asked > 0 {
		t.Errorf("%d questions were asked", asked)
	}
}
