package directory

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/keyed"
)

// TestDamagedCompaniesOfRanges: the owners of ranges are joined to companies, and damage of
// that file is not damage of the ranges.
func TestDamagedCompaniesOfRanges(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sampleFiles(t))
	addrs := []netip.Addr{netip.MustParseAddr("192.31.196.1")}
	owners := []uint32{0}
	if err := mustOpen(t, dir).Owners(addrs, owners); err != nil || owners[0] == 0 {
		t.Fatal(owners, err)
	}
	for _, kind := range []Kind{Companies, IPRanges} {
		d := mustOpen(t, dir)
		path := filepath.Join(dir, d.manifest.Kinds[kind].File)
		whole, err := os.ReadFile(path)
		if err := errors.Join(err, os.Truncate(path, 0)); err != nil {
			t.Fatal(err)
		}
		_, err = d.Range(addrs[0])
		if want := "the file of " + string(kind) + " is damaged"; !errors.Is(err, keyed.ErrDamaged) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("without %s: %v; want %q", kind, err, want)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
