//go:build unix

package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/resolution"
)

// TestOddAnswers: whatever values a service has in its answers, the dataset is whole,
// and what was left out is counted.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	o := badservice.DefaultOptions()
	o.Matched, o.Odd = 1, 1
	_, url := clitest.StartService(t, o)
	for op, row := range map[resolution.Operation]string{
		resolution.EmailToHEM: "email\np%d@mail.example", resolution.NetworkToHEM: "network_url\nhttps://network.example/in/p%d",
		resolution.NetworkToPhone: "network_url\nhttps://network.example/in/p%d", resolution.IPToCompany: "ip\n8.8.4.%d",
		resolution.Enrichment: "network_url\nhttps://network.example/in/p%d", resolution.Deanonymization: "ip\n8.8.4.%d",
		resolution.KeywordToLead: "keywords,deanonymize,super_enrichment\nword %d,true,true", resolution.KeywordToLeadCount: "keywords\nword %d",
	} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			name, row, _ := strings.Cut(row, "\n")
			list, rows := name+"\n", 40
			if op.IsKeyword() {
				rows = 5
			}
			for i := range rows {
				list += fmt.Sprintf(row+"\n", i)
			}
			j := clitest.NewRemoteJob(t, string(op), url, list, "--callback-url", "https://hooks.example/", "--quiet")
			if op == resolution.IPToCompany {
				j.Flags = nil
			}
			j.Run(cli.ExitDone, "--fail-on", "never")
			if d := clitest.ReadDataset(t, j.Path("out")); len(d.Rows) < rows {
				t.Errorf("%d rows", len(d.Rows))
			}
		})
	}
}
