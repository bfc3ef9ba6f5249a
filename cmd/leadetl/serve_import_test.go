//go:build unix

package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestServeImport: an import while the service runs is answered from soon, and
// no call fails meanwhile.
func TestServeImport(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := newCaller(t, "", p.customer("Example Rockets", "1000000"))
	c.url = p.serve(unlimited...).public
	const (
		newcomer = `{"network_url":"network.example/in/newcomer-example"}`
		askFresh = `{"keywords":["fresh bread"],"date_start":"2026-11-01","date_end":"2026-11-13"}`
	)
	if a := c.post("/lead/enrichment", newcomer); a.at("data") != false {
		t.Fatalf("before the import: %d %s", a.status, a.raw)
	}

	// Others call all the while.
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for ctx.Err() == nil {
				a, err := c.try(context.Background(), http.MethodPost, "/lead/enrichment", askAda)
				if err != nil || a.status != http.StatusOK || a.text("lead", "full_name") != "Ada Example" {
					t.Errorf("a call during the import: %d %s %v", a.status, a.raw, err)
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
		leadetl(t, "directory", "import", "--directory", p.directory, "--people", write(t, "people.csv", people), "--searches", write(t, "searches.csv", searches))
		until(t, "the service answers from the import", func() bool {
			return c.post("/lead/enrichment", newcomer).text("lead", "first_name") == name
		})
		// A search of before sees what it saw; the first one is of now.
		list := c.result("", c.post("/resolve/keyword_to_lead", askFresh).text("resolution", "id"))
		if list.at("lead", "pagination", "total") != 1.0 {
			t.Errorf("a search after the import: %d %s", list.status, list.raw)
		}
	}
}

func readSample(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(samples, "directory", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
