package ranges

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// TestFileIsScan: in a file, an address belongs to the range that a look at every range finds,
// also around the ends of a /16, where a range has a start more, and between IPv4 and IPv6.
func TestFileIsScan(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.Custom(func(t *rapid.T) number {
			low := rapid.Uint64Range(0, 3).Draw(t, "slash16")<<16 + rapid.SampledFrom([]uint64{0, 1, 2, 1 << 15, 1<<16 - 2, 1<<16 - 1}).Draw(t, "low")
			switch rapid.IntRange(0, 4).Draw(t, "where") {
			case 0:
				low = 1<<32 - 1 - low // the end of IPv4
			case 1:
				low += 1 << 32 // the start of IPv6
			}
			return number{low: low}
		})
		ranges := someRanges(t, place)
		f := written(t, dir, ranges)
		defer func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}()
		addrs := make([]netip.Addr, 2*together+1)
		for i := range addrs {
			addrs[i] = addrOf(place.Draw(t, "at"))
		}
		owners := make([]uint32, len(addrs))
		f.Owners(addrs, owners)
		for i, a := range addrs {
			if want := narrowestAround(ranges, numberOf(a)); owners[i] != want {
				t.Fatalf("%v: %v belongs to %d, want %d", ranges, a, owners[i], want)
			}
		}
	})
}

// written writes a file and opens it.
func written(t *rapid.T, dir string, ranges []numberRange) *File {
	to, err := atomicfile.Create(filepath.Join(dir, "ranges.cols"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	made := newTable(imports.File{Writer: to, Scratch: dir})
	for _, domain := range []string{"a.example", "b.example", "c.example"} {
		_, failed := made.number(owner{domain: domain, orgType: orgtype.Unknown})
		err = errors.Join(err, failed)
	}
	for _, r := range ranges {
		err = errors.Join(err, made.ranges.Add(r))
	}
	keys, writing := made.write(t.Context())
	if err := errors.Join(err, writing, made.close(), to.Commit()); err != nil {
		t.Fatal(err)
	}
	f, err := Open(disk.Dir(dir), "ranges.cols")
	if err != nil {
		t.Fatal(err)
	}
	networks, err := f.Networks()
	if err := errors.Join(err, f.verify()); err != nil || networks != keys {
		t.Fatalf("%v: %d networks, %d keys, %v", ranges, networks, keys, err)
	}
	return f
}

// addrOf is the inverse of numberOf.
func addrOf(n number) netip.Addr {
	if n.less(first6) {
		return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(n.low))))
	}
	return netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, n.high), n.low)))
}
