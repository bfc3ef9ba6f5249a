//go:build unix

package serve

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/resolution/directory"
)

// TestImportKilled kills imports of all kinds at random moments, every second one soon after
// its last file is written. Each leaves the old data or the new: all kinds, whole. The next
// import removes what a killed one left.
//
// LEADETL_KILLS is how many kills have to hit (default 4).
func TestImportKilled(t *testing.T) {
	t.Parallel()
	kills := clitest.KillsWanted(t, 4)
	const seed = 20_261_124
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "dir")
	imports := func(dir string, files []string) []string {
		return append([]string{"directory", "import", "--directory", dir}, files...)
	}
	var data [2][]string                      // two imports of all kinds
	var wanted [2]map[directory.Kind][32]byte // the files that each makes
	for i, name := range []string{"Old", "New"} {
		data[i] = everyKind(t, name)
		whole := filepath.Join(t.TempDir(), name)
		clitest.Run(t, imports(whole, data[i])...)
		wanted[i] = filesOf(t, whole)
	}
	clitest.Run(t, imports(dir, data[0])...)
	start := time.Now()
	if code := clitest.StartProgram(t, imports(filepath.Join(t.TempDir(), "timed"), data[1])...).Code(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	whole := time.Since(start)

	there, hits, late, missed := 0, 0, 0, 0 // there is which data dir has
	for hits < kills && !t.Failed() {
		next := 1 - there
		began := time.Now()
		p := clitest.StartProgram(t, imports(dir, data[next])...)
		wait := whole
		if hits%2 == 1 {
			for !p.Ended() && !visitsSince(t, dir, began) {
				time.Sleep(time.Millisecond)
			}
			wait = 8 * time.Millisecond
		}
		time.Sleep(time.Duration(random.Int64N(int64(wait))))
		hit := p.Kill()
		clitest.Run(t, "directory", "verify", "--directory", dir)
		got := filesOf(t, dir)
		replaced := maps.Equal(got, wanted[next])
		switch {
		case !replaced && !maps.Equal(got, wanted[there]):
			t.Errorf("after kill %d, the files are those of neither import: %x\nold %x\nnew %x", hits+1, got, wanted[there], wanted[next])
		case !hit && (!replaced || p.Code() != 0):
			t.Errorf("an import ended with exit code %d; the data is replaced: %v", p.Code(), replaced)
		case !hit:
			missed++
		case replaced:
			late++
			fallthrough
		default:
			hits++
		}
		if replaced {
			there = next
		}
	}
	t.Logf("seed %d: %d kills hit, %d of them after the data was replaced; %d imports ended before", seed, hits, late, missed)

	for range 2 { // the last has the searches of the first beside its own
		there = 1 - there
		clitest.Run(t, imports(dir, data[there])...)
	}
	if got := filesOf(t, dir); !maps.Equal(got, wanted[there]) {
		t.Errorf("the last import made %x, want %x", got, wanted[there])
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, errHidden := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || errHidden != nil || len(left) != len(directory.Kinds)+3 || len(hidden) > 1 { // the manifest, the joins, the searches of before; the lock's file may be hidden
		t.Errorf("files %v, %v", left, hidden)
	}
}

// everyKind writes files of all kinds, and returns their flags.
func everyKind(t *testing.T, name string) (flags []string) {
	t.Helper()
	for _, k := range []struct {
		kind   directory.Kind
		header string
		rows   int
		row    func(i int) string
	}{
		{directory.People, "network_url,first_name,emails,company_domain", 4000, func(i int) string {
			return fmt.Sprintf("network.example/in/p%d,%s,p%d@x.example,c%d.example", i, name, i, i%50)
		}},
		{directory.Companies, "domain,name", 500, func(i int) string { return fmt.Sprintf("c%d.example,%s %d", i, name, i) }},
		{directory.IPRanges, "cidr,name", 1000, func(i int) string { return fmt.Sprintf("8.%d.%d.0/24,%s %d", i/200, i%200, name, i) }},
		{directory.Searches, "keyword,searched_at,network_url,city", 2000, func(i int) string {
			return fmt.Sprintf("keyword %d,2026-11-02T08:00:00Z,network.example/in/p%d,%s", i%100, i, name)
		}},
		{directory.Visits, "ip,network_url,confidence", 2000, func(i int) string {
			return fmt.Sprintf("8.0.%d.%d,network.example/in/%s%d,0.5", i/200, i%200, name, i)
		}},
	} {
		var b strings.Builder
		b.WriteString(k.header + "\n")
		for i := range k.rows {
			b.WriteString(k.row(i) + "\n")
		}
		flags = append(flags, "--"+string(k.kind), clitest.WriteFile(t, name+".csv", b.String()))
	}
	return flags
}

// visitsSince reports whether an import has written the visits, which are its last kind, since
// a time.
func visitsSince(t *testing.T, dir string, start time.Time) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, string(directory.Visits)+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.ModTime().After(start)
	})
}

// filesOf returns the checksum of the file of each kind.
func filesOf(t *testing.T, dir string) map[directory.Kind][32]byte {
	t.Helper()
	d, err := directory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	files := map[directory.Kind][32]byte{}
	for _, k := range d.Stat() {
		data, err := os.ReadFile(filepath.Join(dir, k.File))
		if err != nil {
			t.Fatal(err)
		}
		files[k.Kind] = sha256.Sum256(data)
	}
	return files
}
