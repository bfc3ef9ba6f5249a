//go:build unix

package serve

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestServeImport: an import while the service runs is answered from soon, and
// no call fails meanwhile.
func TestServeImport(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	c := clitest.NewCaller(t, "", p.Customer("Example Rockets", "1000000"))
	c.URL = p.Serve(clitest.Unlimited...).Public
	const (
		newcomer = `{"network_url":"network.example/in/newcomer-example"}`
		askFresh = `{"keywords":["fresh bread"],"date_start":"2026-11-01","date_end":"2026-11-13"}`
	)
	if a := c.Post("/lead/enrichment", newcomer); a.At("data") != false {
		t.Fatalf("before the import: %d %s", a.Status, a.Raw)
	}

	// Others call all the while.
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for ctx.Err() == nil {
				a, err := c.Try(context.Background(), http.MethodPost, "/lead/enrichment", clitest.AskAda)
				if err != nil || a.Status != http.StatusOK || a.Text("lead", "full_name") != "Ada Example" {
					t.Errorf("a call during the import: %d %s %v", a.Status, a.Raw, err)
				}
			}
		})
	}
	defer others.Wait()
	defer stop()

	for round, name := range []string{"First", "Second", "Third"} {
		people := readSample(t, "people.csv") + "network.example/in/newcomer-example," + name + ",Newcomer" + strings.Repeat(",", 13) + "\n"
		searches := readSample(t, "searches.csv")
		searches += strings.Repeat("fresh bread,2026-11-02T08:00:00Z,network.example/in/newcomer-example,,,,,,\n", round+1)
		clitest.Run(t, "directory", "import", "--directory", p.Directory, "--people", clitest.WriteFile(t, "people.csv", people), "--searches", clitest.WriteFile(t, "searches.csv", searches))
		clitest.Until(t, "the service answers from the import", func() bool {
			return c.Post("/lead/enrichment", newcomer).Text("lead", "first_name") == name
		})
		// A search of before sees what it saw; the first one is of now.
		list := c.Result("", c.Post("/resolve/keyword_to_lead", askFresh).Text("resolution", "id"))
		if list.At("lead", "pagination", "total") != 1.0 {
			t.Errorf("a search after the import: %d %s", list.Status, list.Raw)
		}
	}
}

func readSample(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(clitest.Samples, "directory", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
