package directory

import (
	"context"
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/internal/tabular"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/phone"
)

// peopleColumns is the order of the source's cells below, and of nothing else.
var peopleColumns = tabular.Columns{
	Names: []string{"network_url", "first_name", "last_name", "headline", "job_title", "seniority", "department",
		"email", "emails", "phones", "street", "zip_code", "city", "state", "company_domain", "last_seen_at", "phone"},
	Required: []string{"network_url"},
}

// peopleStored are the columns of the table people, after its id.
var peopleStored = []string{"network_url", "first_name", "last_name", "headline", "job_title", "seniority", "department",
	"emails", "phones", "street", "zip_code", "city", "state", "company_domain", "last_seen_at"}

// peopleFields is how many columns are stored.
const peopleFields = 15

// emails and phones are lists with ;. A digest is of the email at that place
// in the list; raw bytes, so hex and base64 of it are one key.
const peopleSchema = `
CREATE TABLE people(id INTEGER PRIMARY KEY, network_url TEXT NOT NULL, first_name TEXT, last_name TEXT, headline TEXT,
	job_title TEXT, seniority TEXT, department TEXT, emails TEXT, phones TEXT, street TEXT, zip_code TEXT, city TEXT,
	state TEXT, company_domain TEXT, last_seen_at INTEGER);
CREATE TABLE digests(digest BLOB PRIMARY KEY, person INTEGER NOT NULL, email INTEGER NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE unsorted(digest BLOB, respelled INTEGER, person INTEGER, email INTEGER);`

// peopleIndex sorts what was loaded. Of lines with one key the last stays; of
// people with one email the first, and of one who has it as it is and another
// of whom it is the uid2 or google form the former.
const peopleIndex = `
CREATE INDEX people_network_url ON people(network_url);
DELETE FROM people AS a WHERE EXISTS (SELECT 1 FROM people b WHERE b.network_url = a.network_url AND b.id > a.id);
INSERT OR IGNORE INTO digests SELECT digest, person, email FROM unsorted
	WHERE person IN (SELECT id FROM people) ORDER BY digest, respelled, person, email;
DROP TABLE unsorted;`

func (im *importer) people(ctx context.Context, r *imports.Report) (entry, error) {
	l := loading{
		want:   peopleColumns,
		schema: peopleSchema,
		tables: []tableColumns{
			{"people", append([]string{"id"}, peopleStored...)},
			{"unsorted", []string{"digest", "respelled", "person", "email"}},
		},
		index: peopleIndex,
		keys:  "SELECT count(*) FROM people",
	}
	var buf []byte
	e, err := im.load(ctx, People, r, l, func(row tabular.Row, into []*inserter, sum *imports.Content) error {
		p, ok := im.person(row, r)
		if !ok {
			return nil
		}
		r.Rows++
		emails, phones := strings.Join(p.emails, ";"), strings.Join(p.phones, ";")
		c := row.Cells
		sum.Add(p.key, c[1], c[2], c[3], c[4], c[5], c[6], emails, phones, c[10], c[11], c[12], c[13], p.domain, fmt.Sprint(p.seen))
		for i, key := range p.emails {
			for _, digest := range lookupDigests(key, &buf) {
				if err := into[1].add(digest.raw, digest.respelled, r.Rows, i); err != nil {
					return err
				}
			}
		}
		return into[0].add(r.Rows, p.key, c[1], c[2], c[3], c[4], c[5], c[6], emails, phones, c[10], c[11], c[12], c[13], p.domain, p.seen)
	})
	r.Replaced = r.Rows - e.Keys
	return e, err
}

// personCells is what has to be understood of a line of people.
type personCells struct {
	key, domain    string
	emails, phones []string // canonical, each once, in the source's order
	seen           any      // int64 microseconds or nil
}

// person reads a line. It is bad without a key only; any other cell that
// cannot be read is dropped alone.
func (im *importer) person(row tabular.Row, r *imports.Report) (p personCells, ok bool) {
	c := row.Cells
	key, err := im.settings.Rules.ParsePerson(c[0])
	if err != nil {
		r.Skip(row.Line, "network_url: "+err.Error())
		return p, false
	}
	p.key = key
	for i, cell := range c {
		c[i] = oneLine(cell)
	}
	for _, cell := range append(imports.List(c[7]), imports.List(c[8])...) {
		key, err := imports.EmailKey(cell)
		if err != nil {
			r.Drop(row.Line, "email: "+err.Error())
			continue
		}
		p.emails = appendNew(p.emails, key)
	}
	for _, cell := range append(imports.List(c[16]), imports.List(c[9])...) {
		number, err := phone.Parse(cell, im.settings.Region)
		if err != nil {
			r.Drop(row.Line, "phone: "+err.Error())
			continue
		}
		p.phones = appendNew(p.phones, number.E164)
	}
	if p.domain = company.Domain(c[14]); p.domain == "" && c[14] != "" {
		r.Drop(row.Line, "company_domain: invalid_domain")
	}
	var readable bool
	if p.seen, readable = micros(c[15]); !readable {
		r.Drop(row.Line, "last_seen_at: invalid_time")
	}
	return p, true
}

// appendNew keeps lists of a few members free of doubles.
func appendNew(list []string, member string) []string {
	for _, m := range list {
		if m == member {
			return list
		}
	}
	return append(list, member)
}
