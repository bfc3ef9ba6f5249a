//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestImportKilled: an import killed at any moment leaves the old data or the
// new, whole, and the next import removes what it left.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dir")
	header := "network_url,first_name,emails,company_domain\n"
	rows := func(name string, n int) string {
		var b strings.Builder
		b.WriteString(header)
		for i := range n {
			fmt.Fprintf(&b, "network.example/in/p%d,%s,p%d@x.example,c%d.example\n", i, name, i, i%50)
		}
		return write(t, name+".csv", b.String())
	}
	companies := write(t, "companies.csv", readSample(t, "companies.csv"))
	leadetl(t, "directory", "import", "--directory", dir, "--people", rows("Old", 20_000), "--companies", companies)
	old := leadetl(t, "directory", "stat", "--directory", dir)
	next := rows("New", 20_000)
	start := time.Now()
	leadetl(t, "directory", "import", "--directory", filepath.Join(t.TempDir(), "timed"), "--people", next)
	whole := time.Since(start)

	kills, replaced := 12, 0
	if testing.Short() {
		kills = 4
	}
	program, err := exec.LookPath("leadetl") // the test's own binary; see TestMain
	if err != nil {
		t.Fatal(err)
	}
	for range kills {
		c := exec.Command(program, "directory", "import", "--directory", dir, "--people", next, "--companies", companies)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(2 * whole))
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		leadetl(t, "directory", "verify", "--directory", dir)
		if now := leadetl(t, "directory", "stat", "--directory", dir); now != old {
			replaced++
			old = now
		}
	}
	t.Logf("%d of %d imports were done before they were killed", replaced, kills)
	leadetl(t, "directory", "import", "--directory", dir, "--people", next, "--companies", companies)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, errHidden := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || errHidden != nil || len(left) != 3 || len(hidden) > 1 { // the lock's file may be hidden
		t.Errorf("files %v, %v", left, hidden)
	}
}
