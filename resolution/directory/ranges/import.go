package ranges

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"strings"
	"unsafe"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// Columns are the columns of a file of ranges.
var Columns = imports.Columns{
	Names:  []string{"cidr", "range_start", "range_end", "company_domain", "name", "org_type"},
	Either: [][]string{{"cidr", "range_start"}, {"company_domain", "name"}},
}

var errTooMany = fmt.Errorf("%w: more than 2,147,483,647 ranges", resolution.ErrInvalid)

// Import reads r.Source, a table of ranges or an MMDB, and writes a file. Keys counts the ranges after flattening.
func Import(ctx context.Context, o imports.Options, r *imports.Report, to imports.File) (result imports.Result, err error) {
	f, err := openMMDB(r.Source)
	if err != nil {
		return result, err
	}
	t := newTable(to)
	defer func() { err = errors.Join(err, t.close(), closeFile(f)) }()
	t.orgTypes = orgtype.NewVocabulary(o.OrgTypes)
	if f != nil {
		result.Content, err = t.readMMDB(ctx, f, o, r)
	} else {
		result.Content, err = t.readLines(ctx, o, r)
	}
	if err != nil {
		return imports.Result{}, err
	}
	result.UnknownWords = t.words.List()
	result.Keys, err = t.write(ctx)
	return result, err
}

func closeFile(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// table collects ranges and their distinct owners. The ranges, and the texts of the owners,
// are in temporary files.
type table struct {
	to     imports.File
	ranges *spill.Sorter[numberRange]
	owners *keyed.Lexicon // their numbers are from 1
	owner  []byte         // memory for its text

	orgTypes orgtype.Vocabulary
	words    orgtype.Counts // of rows
}

func newTable(to imports.File) *table {
	return &table{to: to, ranges: spill.New(to.Scratch, numberRange.prefix), owners: keyed.NewLexicon(to.Scratch), words: orgtype.Counts{}}
}

// close frees disk and memory.
func (t *table) close() error { return errors.Join(t.ranges.Close(), t.owners.Close()) }

func (t *table) add(r addrRange, owner uint32) error {
	if t.ranges.Len() == math.MaxInt32 {
		return errTooMany
	}
	return t.ranges.Add(numberRange{numberOf(r.from), numberOf(r.to), owner, uint32(t.ranges.Len())})
}

// number returns the number of an owner.
func (t *table) number(o owner) (uint32, error) {
	t.owner = imports.AppendCells(t.owner[:0], o.domain, o.name, o.orgType)
	n, _, err := t.owners.Code(unsafe.String(unsafe.SliceData(t.owner), len(t.owner)))
	return n + 1, err
}

// readLines reads a CSV or Parquet file and returns the hash of its rows.
func (t *table) readLines(ctx context.Context, o imports.Options, r *imports.Report) (content string, err error) {
	type line struct {
		addrRange
		owner
	}
	parse := func(row imports.Row, r *imports.Report) (l line, ok bool) {
		var reason string
		if l.addrRange, l.owner, reason = t.readRange(row.Cells); reason != "" {
			r.Skip(row.Line, reason)
			return l, false
		}
		if l.domain == "" && row.Cells[3] != "" {
			r.Drop(row.Line, "company_domain: invalid_domain")
		}
		return l, true
	}
	sum := imports.NewContent()
	err = imports.Read(ctx, o, r, Columns, parse, func(l line) error {
		sum.Add(l.from.String(), l.to.String(), l.domain, l.name, l.orgType)
		t.words.Add(l.orgType)
		owner, err := t.number(l.owner)
		return errors.Join(err, t.add(l.addrRange, owner))
	})
	return sum.Sum(), err
}

// after4 is the address with the number first6.
var after4 = netip.MustParseAddr("::1:0:0")

// addrRange is a range of addresses with both ends.
type addrRange struct {
	from, to netip.Addr
}

// special returns the class of a range inside one special block. A block is a prefix, so it
// contains the smallest prefix around the range if it contains the two addresses in the
// middle of that prefix. The ends are not enough: they may be in two blocks.
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

// owner is the owner of a range, as in its line. orgType is as orgtype.Vocabulary.Kind gives it.
type owner struct{ domain, name, orgType string }

// readRange reads a line. reason says what is wrong with it.
func (t *table) readRange(c []string) (r addrRange, o owner, reason string) {
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
	if r.from.Is6() && numberOf(r.from).less(first6) {
		// The numbers of ::/96 are those of IPv4. It holds no addresses of its own any
		// more. Source: RFC 4291, 2.5.5.1.
		if numberOf(r.to).less(first6) {
			return r, o, "ip_class:" + string(ipaddr.Reserved)
		}
		r.from = after4
	}
	o.domain, o.name = company.Domain(c[3]), c[4]
	o.orgType = t.orgTypes.Kind(c[5])
	if c[3]+c[4]+c[5] == "" {
		return r, o, "company_domain, name: empty"
	}
	return r, o, ""
}

// lastAddr returns the highest address of a masked prefix.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// openMMDB opens an MMDB file of this machine; nil for another file.
func openMMDB(name string) (*os.File, error) {
	called := strings.HasSuffix(strings.ToLower(name), ".mmdb")
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		if called && objects.Is(name) {
			return nil, unreadable(name, "is an MMDB file on S3", "Copy it to this machine first")
		}
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil // reading it as a table says why
	}
	found, err := hasMMDBMarker(f)
	if err == nil && found {
		return f, nil
	}
	if err == nil && called {
		err = unreadable(name, "is truncated or not an MMDB file: its end is missing", "Copy it again")
	}
	return nil, errors.Join(err, f.Close())
}

func unreadable(name, problem, advice string) error {
	return fmt.Errorf("%w: %w", resolution.ErrInvalid, &rows.FormatError{File: name, Problem: problem, Advice: advice})
}

// hasMMDBMarker looks for the marker near the end of every MMDB.
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
