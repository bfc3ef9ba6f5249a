package directory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"

	"github.com/leadetl/leadetl/internal/tabular"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/ipaddr"
)

var rangeColumns = tabular.Columns{
	Names:  []string{"cidr", "range_start", "range_end", "company_domain", "name", "org_type"},
	Either: [][]string{{"cidr", "range_start"}, {"company_domain", "name"}},
}

// ipRanges compiles a table of ranges to an MMDB, or takes an MMDB over.
func (im *importer) ipRanges(ctx context.Context, r *imports.Report) (entry, error) {
	f, err := os.Open(r.Source)
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	defer f.Close()
	isMMDB, err := hasMMDBMarker(f)
	if err != nil {
		return entry{}, err
	}
	if isMMDB {
		return im.copyMMDB(ctx, r)
	}
	t := newRangeTable()
	sum := imports.NewContent()
	type line struct {
		addrRange
		of owner
	}
	parse := func(row tabular.Row, r *imports.Report) (l line, ok bool) {
		var reason string
		if l.addrRange, l.of, reason = readRange(row.Cells); reason != "" {
			r.Skip(row.Line, reason)
			return l, false
		}
		if l.of.domain == "" && row.Cells[3] != "" {
			r.Drop(row.Line, "company_domain: invalid_domain")
		}
		if _, known := orgType(row.Cells[5]); !known {
			r.Drop(row.Line, "org_type: unknown_word")
		}
		return l, true
	}
	if err := imports.Read(ctx, im.settings, r, rangeColumns, parse, func(l line) error {
		sum.Add(l.from.String(), l.to.String(), l.of.domain, l.of.name, l.of.orgType)
		t.add(l.addrRange, l.of)
		return nil
	}); err != nil {
		return entry{}, err
	}
	t.sort()
	e, err := im.compile(ctx, t.each)
	e.Rows, e.Content = r.Rows, sum.Sum()
	return e, err
}

// addrRange is a range of addresses, both ends included.
type addrRange struct {
	from, to netip.Addr
	owner    int32 // index into rangeTable.owners
}

// special is the class of a range that lies in one special block. Blocks are
// prefixes, so one that holds the two addresses in the middle of the smallest
// prefix around the range holds that prefix; ends that are special both may be
// of two blocks with the whole world between them.
func (r addrRange) special() (ipaddr.Class, bool) {
	class := ipaddr.ClassOf(r.from)
	if class == ipaddr.Public || class != ipaddr.ClassOf(r.to) {
		return "", false
	}
	if r.from == r.to {
		return class, true
	}
	around := r.to.BitLen()
	for !netip.PrefixFrom(r.to, around).Contains(r.from) {
		around--
	}
	middle := netip.PrefixFrom(r.to, around+1).Masked().Addr()
	return class, class == ipaddr.ClassOf(middle) && class == ipaddr.ClassOf(middle.Prev())
}

// owner is whose a range is, as its line says.
type owner struct{ domain, name, orgType string }

// readRange reads a line; reason says why it is none.
func readRange(c []string) (r addrRange, o owner, reason string) {
	switch cidr, from, to := c[0], c[1], c[2]; {
	case cidr != "":
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			a, err := netip.ParseAddr(cidr) // one address
			if err != nil || a.Zone() != "" {
				return r, o, "cidr: invalid_range"
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p.Addr().Is4In6() {
			if p.Bits() < 96 {
				return r, o, "cidr: invalid_range"
			}
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		p = p.Masked()
		r.from, r.to = p.Addr(), lastAddr(p)
	case from != "" && to != "":
		var errFrom, errTo error
		r.from, errFrom = netip.ParseAddr(from)
		r.to, errTo = netip.ParseAddr(to)
		r.from, r.to = r.from.Unmap(), r.to.Unmap()
		if errFrom != nil || errTo != nil || r.from.BitLen() != r.to.BitLen() || r.from.Zone()+r.to.Zone() != "" || r.to.Less(r.from) {
			return r, o, "range_start, range_end: invalid_range"
		}
	default:
		return r, o, "cidr: empty"
	}
	if class, ok := r.special(); ok {
		return r, o, "ip_class:" + string(class) // never looked up
	}
	o.domain, o.name = company.Domain(c[3]), oneLine(c[4])
	o.orgType, _ = orgType(c[5])
	if c[3]+c[4]+c[5] == "" {
		return r, o, "company_domain, name: empty"
	}
	return r, o, ""
}

// lastAddr is the highest address of a masked prefix.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// rangeTable holds the ranges of a file with the owners once each.
type rangeTable struct {
	ranges []addrRange
	owners []owner
	index  map[owner]int32
}

func newRangeTable() *rangeTable { return &rangeTable{index: map[owner]int32{}} }

func (t *rangeTable) add(r addrRange, o owner) {
	i, ok := t.index[o]
	if !ok {
		i = int32(len(t.owners))
		t.owners = append(t.owners, o)
		t.index[o] = i
	}
	r.owner = i
	t.ranges = append(t.ranges, r)
}

// sort puts wide ranges before narrow ones: what is inserted later wins, and
// the range that says most about an address should. Of equals the later line
// wins.
func (t *rangeTable) sort() {
	t.index = nil
	slices.SortStableFunc(t.ranges, func(a, b addrRange) int {
		aHigh, aLow := a.size()
		bHigh, bLow := b.size()
		return cmp.Or(cmp.Compare(bHigh, aHigh), cmp.Compare(bLow, aLow))
	})
}

// size is the number of addresses less one, as a 128-bit number.
func (r addrRange) size() (high, low uint64) {
	from, to := r.from.As16(), r.to.As16()
	fromLow, toLow := binary.BigEndian.Uint64(from[8:]), binary.BigEndian.Uint64(to[8:])
	high = binary.BigEndian.Uint64(to[:]) - binary.BigEndian.Uint64(from[:])
	if toLow < fromLow {
		high--
	}
	return high, toLow - fromLow
}

func (t *rangeTable) each(insert func(from, to netip.Addr, o owner) error) error {
	for _, r := range t.ranges {
		if err := insert(r.from, r.to, t.owners[r.owner]); err != nil {
			return err
		}
	}
	return nil
}

// hasMMDBMarker looks for what every MMDB has near its end.
// Source: MaxMind DB file format specification 2.0, metadata section.
func hasMMDBMarker(f *os.File) (bool, error) {
	const within = 128 << 10
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false, err
	}
	tail := make([]byte, min(size, within))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.Contains(tail, []byte("\xab\xcd\xefMaxMind.com")), nil
}
