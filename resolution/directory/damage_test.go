package directory

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/resolution"
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
	fillOwner := func(d *Directory) error {
		_, err := d.AddCompanyOf(owners[0], &resolution.CompanyList{})
		return err
	}
	for _, f := range []struct {
		damaged Kind
		look    string
		ask     func(*Directory) error
	}{
		{Companies, "Range", func(d *Directory) error { _, err := d.Range(addrs[0]); return err }},
		{Companies, "AddCompanyOf", fillOwner},
		{IPRanges, "Range", func(d *Directory) error { _, err := d.Range(addrs[0]); return err }},
		{IPRanges, "AddCompanyOf", fillOwner},
	} {
		d := mustOpen(t, dir)
		path := filepath.Join(dir, d.manifest.Kinds[f.damaged].File)
		whole, err := os.ReadFile(path)
		if err := errors.Join(err, os.Truncate(path, 0)); err != nil {
			t.Fatal(err)
		}
		err = f.ask(d)
		if want := "the file of " + string(f.damaged) + " is damaged"; !errors.Is(err, columnfile.ErrDamaged) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s without %s: %v; want %q", f.look, f.damaged, err, want)
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
