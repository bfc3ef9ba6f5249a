package directory

import (
	"net/netip"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/companies"
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
	companies *companies.File // joins copied records at look-up; may be nil
	// remembered holds decoded records by their offset in the file.
	remembered remembered[uintptr, rangeAnswer]
}

// A remembered answer is some 300 bytes and at most a kilobyte of text,
// usually two hundred bytes: all of them are about 70 MB, and never more than
// 200 MB.
const rememberedRangesBits, rememberedText = 17, 1 << 10

// rangeAnswer is a Range with everything it points to, one allocation and one
// string.
type rangeAnswer struct {
	Range
	company  resolution.Company
	industry string
	founded  int32
	text     int  // bytes of text it keeps in memory
	empty    bool // a record that says nothing: no answer
}

func openRanges(path string, fields *Fields) (*rangeReader, error) {
	// Strings are read once per record; the reader's own cache of them would
	// only be in the way.
	db, err := maxminddb.Open(path, maxminddb.DisableStringCache())
	if err != nil {
		return nil, err
	}
	return &rangeReader{db: db, fields: fields, remembered: remember[uintptr, rangeAnswer](rememberedRangesBits)}, nil
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
	hash := uint64(result.Offset()) * 0x9e3779b97f4a7c15
	if a := r.remembered.find(hash, result.Offset()); a != nil {
		return a.answer(), nil
	}
	m := &recollection[uintptr, rangeAnswer]{key: result.Offset()}
	a := &m.value
	if err := r.decode(result, a); err != nil {
		return nil, err
	}
	if a.text <= rememberedText {
		r.remembered.keep(hash, m)
	}
	return a.answer(), nil
}

// answer is the range, nil when the record says nothing.
func (a *rangeAnswer) answer() *Range {
	if a.empty {
		return nil
	}
	return &a.Range
}

// decode reads a record into a, which is zero.
func (r *rangeReader) decode(result maxminddb.Result, a *rangeAnswer) error {
	var o owner
	var packed string
	if r.fields == nil {
		var record string
		err := result.Decode(&record)
		if err == nil {
			o, packed, err = splitRecord(record)
			a.text = len(record)
		}
		if err != nil {
			return err
		}
	} else if o, a.empty = r.fields.owner(result); a.empty {
		return nil
	}
	a.OrgType = o.orgType
	a.text = max(a.text, len(o.name)+len(o.domain))
	if packed != "" {
		if err := a.unpack(packed); err != nil {
			return err
		}
		a.Company = &a.company
	} else if o.name+o.domain != "" {
		a.company.Name, a.company.Domain = o.name, o.domain
		a.Company = &a.company
	}
	if r.fields != nil && o.domain != "" {
		if domain := company.Domain(o.domain); domain != "" {
			a.company.Domain = domain
			if r.companies != nil {
				known, err := r.companies.Company(domain)
				if err != nil {
					return err
				}
				if known != nil {
					a.company = *known
					a.Company = &a.company
					a.text += len(pack(known))
				}
			}
		}
	}
	if a.Company != nil && a.Company.Name == "" {
		a.Company.Name = o.name
	}
	return nil
}
