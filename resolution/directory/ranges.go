package directory

import (
	"errors"
	"net/netip"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2"
	"github.com/oschwald/maxminddb-golang/v2/mmdbdata"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/company"
)

// Range is who an address belongs to. It is shared: do not change it.
type Range struct {
	// OrgType is one of the words of this package, Unknown when nobody said.
	OrgType string
	// Company is nil when the range has neither a name nor a domain.
	Company *resolution.Company
}

// Range finds the narrowest range around an address that may be looked up
// (ipaddr.LookupAddr); nil when there is none. It costs no allocation and no
// lock when the record has been read before and is still remembered.
func (d *Directory) Range(addr netip.Addr) (*Range, error) {
	if d.ranges == nil {
		return nil, nil
	}
	return d.ranges.find(addr)
}

// rangeReader reads an MMDB: one we compiled, or, when fields is set, one that
// was copied in.
type rangeReader struct {
	db        *maxminddb.Reader
	fields    *Fields
	companies *companyReader // joins copied records at look-up; may be nil
	// remembered holds decoded records by the hash of their offset in the
	// file; what comes later takes the place. So it is bounded, needs no lock,
	// and a miss costs one decoding.
	remembered [rememberedRanges]atomic.Pointer[rangeAnswer]
}

// rememberedRanges is a power of two. An answer is about half a kilobyte.
const rememberedBits, rememberedRanges = 16, 1 << 16

// rangeAnswer is a Range with everything it points to, one allocation and one
// string.
type rangeAnswer struct {
	Range
	company  resolution.Company
	industry string
	founded  int32
	offset   uintptr
	empty    bool // a record that says nothing: no answer
}

func openRanges(path string, fields *Fields) (*rangeReader, error) {
	// Strings are read once per record; the reader's own cache of them would
	// only be in the way.
	db, err := maxminddb.Open(path, maxminddb.DisableStringCache())
	if err != nil {
		return nil, err
	}
	return &rangeReader{db: db, fields: fields}, nil
}

func (r *rangeReader) Close() error { return r.db.Close() }

func (r *rangeReader) find(addr netip.Addr) (*Range, error) {
	if r.db.Metadata.IPVersion == 4 && !addr.Is4() {
		return nil, nil
	}
	result := r.db.Lookup(addr)
	if !result.Found() {
		return nil, result.Err()
	}
	slot := &r.remembered[uint64(result.Offset())*0x9e3779b97f4a7c15>>(64-rememberedBits)]
	a := slot.Load()
	if a == nil || a.offset != result.Offset() {
		var err error
		if a, err = r.decode(result); err != nil {
			return nil, err
		}
		slot.Store(a)
	}
	if a.empty {
		return nil, nil
	}
	return &a.Range, nil
}

func (r *rangeReader) decode(result maxminddb.Result) (*rangeAnswer, error) {
	a := &rangeAnswer{offset: result.Offset()}
	var record rangeRecord
	if r.fields == nil {
		if err := result.Decode(&record); err != nil {
			return nil, err
		}
	} else {
		var ok bool
		if record.owner, ok = r.fields.owner(result); !ok {
			a.empty = true
			return a, nil
		}
	}
	a.OrgType = record.orgType
	if record.company != "" {
		if err := a.unpack(record.company); err != nil {
			return nil, err
		}
		a.Company = &a.company
	} else if record.name+record.domain != "" {
		a.company.Name, a.company.Domain = record.name, record.domain
		a.Company = &a.company
	}
	if r.fields != nil && record.domain != "" {
		if domain := company.Domain(record.domain); domain != "" {
			a.company.Domain = domain
			if r.companies != nil {
				known, err := r.companies.find(domain)
				if err != nil {
					return nil, err
				}
				if known != nil {
					a.Company = known
				}
			}
		}
	}
	if a.Company != nil && a.Company.Name == "" {
		a.Company.Name = record.name
	}
	return a, nil
}

// rangeRecord is a compiled record. With a company the owner's domain and
// name are left out, unless whole.
type rangeRecord struct {
	owner
	company string
	whole   bool
}

// UnmarshalMaxMindDBCursor reads the map compile wrote. Keys come in order,
// so the company comes first.
func (r *rangeRecord) UnmarshalMaxMindDBCursor(at mmdbdata.Cursor) (mmdbdata.Cursor, error) {
	m, err := at.MapReader()
	if err != nil {
		return mmdbdata.Cursor{}, err
	}
	next := m.First()
	for range m.Len() {
		key, value, err := next.ReadMapKey()
		if err != nil {
			return mmdbdata.Cursor{}, err
		}
		switch string(key) {
		case "company":
			if r.company, next, err = value.ReadString(); err != nil {
				return next, err
			}
		case "domain":
			if r.company != "" && !r.whole {
				next, err = value.Skip()
			} else {
				r.domain, next, err = value.ReadString()
			}
		case "name":
			r.name, next, err = value.ReadString()
		case "type":
			var word string
			if word, next, err = value.ReadString(); err == nil {
				r.orgType, _ = orgType(word)
			}
		default:
			err = errors.New("a compiled range has an unknown field")
		}
		if err != nil {
			return mmdbdata.Cursor{}, err
		}
	}
	return m.End(next)
}
