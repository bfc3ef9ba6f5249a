package directory

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/companies"
)

// A compiled record is one string of fields with separators between them: the
// range's type, domain and name, and when the domain's company is known all of
// its fields (pack). The company is in the record, so that a look-up touches
// one file and reads one string, whatever the number of companies; and it is
// a string and not a map, because a map's keys and values are each hashed and
// kept while the file is written, and each found again when it is read: a
// million distinct companies took 2.8 GB as maps and take 2.3 GB as strings.

// compile writes an MMDB of what each inserts, joined to the companies of the
// generation being built.
func (im *importer) compile(ctx context.Context, each func(insert func(from, to netip.Addr, o owner) error) error) (_ entry, err error) {
	// 32 bits, because 28 would end at 256 MB of records.
	tree, err := mmdbwriter.New(mmdbwriter.Options{
		DatabaseType:            "leadetl-ip-ranges",
		Description:             map[string]string{"en": "IP ranges with their companies"},
		RecordSize:              32,
		BuildEpoch:              1, // not now: the same source makes the same bytes
		IncludeReservedNetworks: true,
		KeyGenerator:            &recordKey{},
	})
	if err != nil {
		return entry{}, err
	}
	var known *companies.File
	if e, ok := im.manifest.Kinds[Companies]; ok {
		if known, err = companies.Open(filepath.Join(im.dir, e.File)); err != nil {
			return entry{}, err
		}
		defer known.Close()
	}
	records := recordMaker{companies: known, made: map[owner]mmdbtype.String{}}
	n := 0
	err = each(func(from, to netip.Addr, o owner) error {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		record, err := records.make(o)
		if err != nil {
			return err
		}
		err = tree.InsertRange(net.IP(from.AsSlice()), net.IP(to.AsSlice()), record)
		var aliased *mmdbwriter.AliasedNetworkError
		if errors.As(err, &aliased) {
			return nil // a tunnel's alias of IPv4 space: never looked up
		}
		return err
	})
	if err != nil {
		return entry{}, err
	}
	path := im.path(IPRanges, "mmdb")
	f, err := atomicfile.Create(path)
	if err != nil {
		return entry{}, err
	}
	defer f.Abort()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := tree.WriteTo(w); err != nil {
		return entry{}, err
	}
	if err := w.Flush(); err != nil {
		return entry{}, err
	}
	if err := f.Commit(); err != nil {
		return entry{}, err
	}
	return describeMMDB(path)
}

// rejoinRanges compiles the networks of an MMDB again.
func (im *importer) rejoinRanges(ctx context.Context, old entry) (entry, error) {
	r, err := maxminddb.Open(filepath.Join(im.dir, old.File))
	if err != nil {
		return entry{}, err
	}
	defer r.Close()
	e, err := im.compile(ctx, func(insert func(from, to netip.Addr, o owner) error) error {
		for result := range r.Networks() {
			var record string
			if err := result.Decode(&record); err != nil {
				return err
			}
			o, _, err := splitRecord(record)
			if err != nil {
				return err
			}
			p := result.Prefix()
			if err := insert(p.Addr(), lastAddr(p), o); err != nil {
				return err
			}
		}
		return nil
	})
	e.Source, e.Rows, e.Content, e.Imported = old.Source, old.Rows, old.Content, old.Imported
	return e, err
}

// recordMaker makes each distinct record once.
type recordMaker struct {
	companies *companies.File // may be nil
	made      map[owner]mmdbtype.String
}

func (m *recordMaker) make(o owner) (mmdbtype.String, error) {
	if record, ok := m.made[o]; ok {
		return record, nil
	}
	record := o.orgType + separator + o.domain + separator + o.name
	if m.companies != nil && o.domain != "" {
		c, err := m.companies.Company(o.domain)
		if err != nil {
			return "", err
		}
		if c != nil {
			record += separator + pack(c)
		}
	}
	m.made[o] = mmdbtype.String(record)
	return m.made[o], nil
}

// splitRecord is the inverse of make: the owner and, "" when it is not known,
// the packed company.
func splitRecord(record string) (o owner, company string, err error) {
	var ok bool
	if o.orgType, record, ok = strings.Cut(record, separator); ok {
		o.domain, record, ok = strings.Cut(record, separator)
	}
	if !ok {
		return o, "", errors.New("a range's record has too few fields")
	}
	o.name, company, _ = strings.Cut(record, separator)
	return o, company, nil
}

// recordKey tells records apart by whose they are: within one compilation the
// company follows from the domain.
type recordKey struct{ buf []byte }

func (k *recordKey) Key(v mmdbtype.DataType) ([]byte, error) {
	record, ok := v.(mmdbtype.String)
	if !ok {
		return nil, fmt.Errorf("record is a %T", v)
	}
	o, _, err := splitRecord(string(record))
	k.buf = append(k.buf[:0], o.orgType...)
	k.buf = append(append(k.buf, separator...), o.domain...)
	k.buf = append(append(k.buf, separator...), o.name...)
	return k.buf, err
}

// separator stands between the fields of a packed company, so it is taken out
// of them (ASCII unit separator).
const separator = "\x1f"

// packedFields is how many fields pack writes.
const packedFields = 13

// pack writes a company as one string.
func pack(c *resolution.Company) string {
	var industry, founded string
	if c.Industry != nil {
		industry = *c.Industry
	}
	if c.YearFounded != nil {
		founded = strconv.Itoa(int(*c.YearFounded))
	}
	fields := [packedFields]string{c.Name, c.Domain, c.WebsiteURL, c.NetworkURL, industry, c.Revenue, c.EmployeeCount, founded,
		c.Address.Street, c.Address.ZipCode, c.Address.City, c.Address.State, c.About}
	for i, f := range fields {
		fields[i] = oneLine(f)
	}
	return strings.Join(fields[:], separator)
}

func oneLine(s string) string { return strings.ReplaceAll(s, separator, " ") }

// cut fills fields with the parts of a text between separators; false when it
// does not have as many.
func cut(text string, fields []string) bool {
	last := len(fields) - 1
	for i := range last {
		at := strings.IndexByte(text, separator[0])
		if at < 0 {
			return false
		}
		fields[i], text = text[:at], text[at+1:]
	}
	fields[last] = text
	return !strings.Contains(text, separator)
}

// unpack reads what pack wrote into a, whose strings share the packed one.
func (a *rangeAnswer) unpack(packed string) error {
	var fields [packedFields]string
	if !cut(packed, fields[:]) {
		return errors.New("a packed company does not have its fields")
	}
	c := &a.company
	c.Name, c.Domain, c.WebsiteURL, c.NetworkURL = fields[0], fields[1], fields[2], fields[3]
	if fields[4] != "" {
		a.industry = fields[4]
		c.Industry = &a.industry
	}
	c.Revenue, c.EmployeeCount = fields[5], fields[6]
	if fields[7] != "" {
		year, err := strconv.ParseInt(fields[7], 10, 32)
		if err != nil {
			return errors.New("a packed company has an odd year")
		}
		a.founded = int32(year)
		c.YearFounded = &a.founded
	}
	c.Address = resolution.Address{Street: fields[8], ZipCode: fields[9], City: fields[10], State: fields[11]}
	c.About = fields[12]
	return nil
}
