//go:build unix

package remote

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestSameNumbers: what plan says of duplicates and stored answers is what the run, its table and its
// report say, however soon a key comes again.
func TestSameNumbers(t *testing.T) {
	t.Parallel()
	const keys = 150
	list := func(keys int) string { return strings.TrimPrefix(clitest.AddressList(keys), "ip\n") }
	for _, c := range []struct {
		name               string
		stored             int // of the keys, before
		rows               string
		flags              []string
		distinct, repeated int
	}{
		{"in one batch", 0, list(keys) + list(keys), nil, keys, keys},
		{"in other parts", 0, strings.Repeat(list(keys), 4), []string{"--set", "rows_per_part=100"}, keys, 3 * keys},
		{"some are stored", 40, strings.Repeat(list(keys), 4), []string{"--set", "rows_per_part=100"}, keys, 3 * keys},
		{"all are stored", keys, list(keys) + list(30), []string{"--set", "rows_per_part=10", "--concurrency", "2"}, keys, 30},
		{"nothing may be asked", 40, strings.Repeat(list(keys), 2), []string{"--set", "rows_per_part=100", "--offline"}, keys, keys},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := badservice.DefaultOptions()
			o.Matched = 1
			_, url := clitest.StartService(t, o)
			j := clitest.NewRemoteJob(t, "ip_to_company", url, clitest.AddressList(max(c.stored, 1)), "--idempotent")
			if c.stored > 0 {
				j.Run(cli.ExitDone)
			}
			if err := os.WriteFile(j.Path("more.csv"), []byte("ip\n"+c.rows), 0o600); err != nil {
				t.Fatal(err)
			}
			flags := append(c.flags, "--in", j.Path("more.csv"), "--out", j.Path("more"))
			planned := struct {
				Duplicates, Keys int
				Calls            struct{ Stored int }
			}{}
			read := func(text []byte, into any) {
				t.Helper()
				if err := json.Unmarshal(text, into); err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
			}
			plan := clitest.StartProgram(t, append(append([]string{"plan"}, j.Args(flags...)[1:]...), "--json")...)
			plan.Waited()
			read([]byte(plan.Printed.String()), &planned)
			p := j.Start(flags...)
			p.Waited()
			text, err := os.ReadFile(j.Path("more/_report.json"))
			if err != nil {
				t.Fatalf("%v\n%s", err, p.Said.String())
			}
			var report struct {
				Duplicates int
				Service    struct {
					Calls struct{ Asked, Closed, Stored, Duplicates int }
				}
			}
			read(text, &report)
			calls := report.Service.Calls
			got := fmt.Sprint(planned.Keys, planned.Duplicates, planned.Calls.Stored, report.Duplicates, calls.Asked, calls.Closed, calls.Stored, calls.Duplicates)
			again := c.repeated + max(c.stored, 1) // the first list is read, too
			want := fmt.Sprint(c.distinct, again, c.stored, again, c.distinct, c.distinct, c.stored, again)
			if got != want {
				t.Errorf("keys, duplicates and stored answers of plan; duplicates, and asked, closed, stored, duplicates of the report are\n%s, want\n%s", got, want)
			}
		})
	}
}
