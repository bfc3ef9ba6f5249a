//go:build unix

package remote

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// TestImported: a run with an imported state buys nothing again. An imported call without an answer is
// sent again only if the user wants it.
func TestImported(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]clitest.Keeper{"folder": clitest.InFolder, "s3": clitest.OnS3(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rows, open = 40, 10
			o := badservice.DefaultOptions()
			o.Matched, o.Faults.Failed = 1, 1
			s, url := clitest.StartService(t, o)
			list := clitest.AddressList(rows)
			firstRows := strings.Join(strings.SplitAfter(list, "\n")[:1+open], "")
			j := clitest.NewRemoteJob(t, "ip_to_company", url, firstRows)
			keep(j)
			j.Run(cli.ExitRejects)
			s.SetFaults(badservice.Faults{})
			if err := os.WriteFile(j.In, []byte(list), 0o600); err != nil {
				t.Fatal(err)
			}
			j.Run(cli.ExitRejects, "--overwrite")
			unknown, billed := j.Unknown(), len(s.Ledger())
			if len(unknown) != open || billed != rows {
				t.Fatalf("%d calls are unknown and %d billed, want %d and %d", len(unknown), billed, open, rows)
			}
			export := func(name string) []string {
				j.Answers("export", "--out", j.Path(name))
				text, err := os.ReadFile(j.Path(name))
				if err != nil {
					t.Fatal(err)
				}
				return slices.Sorted(strings.Lines(string(text)))
			}
			exported := export("answers.jsonl")
			if keep(j); name == "folder" {
				j.State = []string{"--state", j.Path("imported")}
			}
			if said := j.Answers("import", j.Path("answers.jsonl")); said != "30 answers and 10 open calls imported" {
				t.Errorf("it says %q", said)
			}
			if again := export("again.jsonl"); !slices.Equal(again, exported) {
				t.Errorf("exported\n%s\nand after the import\n%s", exported, again)
			}
			j.Run(cli.ExitRejects, "--overwrite", "--out", j.Path("after"))
			seen := s.Seen()
			if len(s.Ledger()) != billed || seen != rows || !slices.Equal(j.Unknown(), unknown) {
				t.Errorf("%d calls are made, %d billed and %d unknown, want %d, %d and %d", seen, len(s.Ledger()), len(j.Unknown()), rows, billed, open)
			}
			j.Run(cli.ExitDone, "--out", j.Path("after"), "--retry-unknown")
			if s.Seen() != seen+open || len(s.Ledger()) != billed || len(j.Unknown()) != 0 { // the service knows the keys of the calls
				t.Errorf("with --retry-unknown %d more calls are made, %d billed and %d unknown, want %d, %d and none", s.Seen()-seen, len(s.Ledger()), len(j.Unknown()), open, billed)
			}
		})
	}
}
