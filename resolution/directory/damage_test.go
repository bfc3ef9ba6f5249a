package directory

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/companies"
	"github.com/leadetl/leadetl/resolution/directory/records"
)

// answers are look-ups in every kind of the sample, and the first error.
func answers(t *testing.T, d *Directory) (all []any, err error) {
	add := func(answer any, e error) {
		all = append(all, answer)
		err = errors.Join(err, e)
	}
	for _, key := range []string{"network.example/in/ada", "network.example/in/ben", "network.example/in/nobody"} {
		p, e := d.Person(t.Context(), key)
		add(p, e)
	}
	for _, key := range []string{"ada@bakery.example", "ada+x@gmail.com", "nobody@mail.example"} {
		p, _, e := d.PersonByEmail(t.Context(), key)
		add(p, e)
	}
	for _, domain := range []string{"bakery.example", "tea.example", "nothing.example"} {
		c, e := d.Company(t.Context(), domain)
		add(c, e)
	}
	for _, ip := range []string{"192.31.196.1", "192.31.196.9", "192.52.193.1", "2001:20:1::1", "8.8.8.8"} {
		v, e := d.Visits(t.Context(), netip.MustParseAddr(ip))
		add(v, e)
		r, e := d.Range(netip.MustParseAddr(ip))
		add(r, e)
	}
	found, n, e := d.FindSearches(t.Context(), resolution.KeywordSearch{Keywords: []string{"rye bread"}}, 0, 10)
	add(found, e)
	add(n, nil)
	return all, err
}

// TestDamage changes bytes all over the column files, one at a time: no answer
// differs, look-ups that meet the damage say so, and Verify finds it.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	mustImport(t, dir, sampleFiles(t))
	d := mustOpen(t, dir)
	want, err := answers(t, d)
	if err != nil {
		t.Fatal(err)
	}
	step := int64(11)
	if testing.Short() {
		step = 101
	}
	for _, k := range Kinds {
		e := d.manifest.Kinds[k]
		step := max(step, e.Bytes/300) // the table of IPv4 is large
		f, err := os.OpenFile(filepath.Join(dir, e.File), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		met := 0
		for at := int64(0); at < e.Bytes; at += step {
			var b [1]byte
			if _, err := f.ReadAt(b[:], at); err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{^b[0]}, at); err != nil {
				t.Fatal(err)
			}
			if damagedAnswers(t, dir, string(k), at, want) {
				met++
			}
			if _, err := f.WriteAt(b[:], at); err != nil {
				t.Fatal(err)
			}
		}
		if met == 0 {
			t.Errorf("%s: no look-up met the damage", k)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := d.Verify(t.Context()); err != nil {
		t.Errorf("put right: %v", err)
	}
}

// damagedAnswers reports whether an error was met before Verify was asked.
func damagedAnswers(t *testing.T, dir, kind string, at int64, want []any) (met bool) {
	d, err := Open(dir)
	if err != nil {
		if !errors.Is(err, resolution.ErrInvalid) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s, byte %d: open: %v", kind, at, err)
		}
		return true
	}
	defer d.Close()
	got, err := answers(t, d)
	if err != nil && !errors.Is(err, columnfile.ErrDamaged) {
		t.Errorf("%s, byte %d: %v", kind, at, err)
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s, byte %d: other answers", kind, at)
	}
	if err := d.Verify(t.Context()); !errors.Is(err, columnfile.ErrDamaged) || !strings.Contains(err.Error(), " have a wrong checksum") || !strings.Contains(err.Error(), kind) {
		t.Errorf("%s, byte %d: verify: %v", kind, at, err)
	}
	return err != nil
}

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
	for _, f := range []struct {
		damaged Kind
		look    string
		ask     func(*Directory) error
	}{
		{Companies, "Range", func(d *Directory) error { _, err := d.Range(addrs[0]); return err }},
		{Companies, "CompaniesOf", func(d *Directory) error { return d.CompaniesOf(owners, make([]*resolution.Company, 1)) }},
		{Companies, "FillCompanyOf", func(d *Directory) error {
			_, err := d.FillCompanyOf(owners[0], &records.Arena{}, &companies.Entry{})
			return err
		}},
		{IPRanges, "Range", func(d *Directory) error { _, err := d.Range(addrs[0]); return err }},
		{IPRanges, "CompaniesOf", func(d *Directory) error { return d.CompaniesOf(owners, make([]*resolution.Company, 1)) }},
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
