package people

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/phone"
)

// The columns of a file of people by their places: the key, the texts of texts, and those that are
// read in ways of their own.
const (
	textColumns = 1
	emailColumn = int(resolution.Fields-resolution.FieldFirstName) + iota
	emailsColumn
	phoneColumn
	phonesColumn
	domainColumn
	seenColumn
)

// Columns are the columns of a file of people.
var Columns = imports.Columns{
	Names:    slices.Concat([]string{"network_url"}, namesOfTexts(), []string{"email", "emails", "phone", "phones", "company_domain", "last_seen_at"}),
	Required: []string{"network_url"},
}

// namesOfTexts are the columns of texts, in the order of their fields.
func namesOfTexts() []string {
	names := make([]string, resolution.Fields-resolution.FieldFirstName)
	for _, v := range values.Person {
		if v.Text >= resolution.FieldFirstName {
			names[v.Text-resolution.FieldFirstName] = v.Name
		}
	}
	return names
}

// repeated are the fields with texts that many people share.
var repeated = func() []bool {
	shared := [fields]bool{phoneDetails: true, companyDomain: true}
	for place, f := range texts {
		shared[place] = shared[place] || f > 0
	}
	return shared[:]
}()

// Import reads r.Source and writes a file.
// Of lines with the same profile address, it keeps the last. Of people with the same email,
// the first is found by it, and people who have it as it is come before those who have it
// in the uid2 or google form.
func Import(ctx context.Context, options imports.Options, r *imports.Report, to imports.File) (_ imports.Result, err error) {
	w := keyed.NewWriter(to, to.Scratch, repeated, keyed.MappedPages)
	digests := keyed.NewIndexWriter(to.Scratch, keyed.First)
	defer func() { err = errors.Join(err, w.Close(), digests.Close()) }()
	sum := imports.NewContent()
	if err := imports.ReadBatches(ctx, options, r, Columns, imports.Steps[lines]{
		Parse: parser(options),
		End:   (*lines).hash,
		Take: func(l *lines) error {
			sum.AddAppended(l.cells)
			return l.writeTo(w, digests)
		},
	}); err != nil {
		return imports.Result{}, err
	}
	keys, err := w.Records(ctx)
	if err != nil {
		return imports.Result{}, err
	}
	if _, err := digests.Write(ctx, w.Columns, "digests", w.Kept, nil); err != nil {
		return imports.Result{}, err
	}
	r.Replaced = r.Rows - int64(keys)
	return imports.Result{Keys: int64(keys), Content: sum.Sum()}, w.Finish()
}

// parser returns a function that reads a line. A line without a key is bad. Of other cells
// that cannot be read, only the cell is dropped.
func parser(o imports.Options) func(imports.Row, *lines, *imports.Report) bool {
	rules := o.Rules()
	return func(row imports.Row, to *lines, r *imports.Report) bool {
		c := row.Cells
		key, err := rules.ParsePerson(c[0])
		if err != nil {
			r.Skip(row.Line, "network_url: "+err.Error())
			return false
		}
		to.emails.reset()
		addEmail := func(cell string) {
			if err := to.addEmail(cell); err != nil {
				r.Drop(row.Line, "email: "+err.Error())
			}
		}
		imports.EachMember(c[emailColumn], addEmail)
		imports.EachMember(c[emailsColumn], addEmail)
		to.phones.reset()
		raw, details := "", "" // of the first
		addPhone := func(cell string) {
			number, err := phone.Parse(cell, o.DefaultRegion)
			if err != nil {
				r.Drop(row.Line, "phone: "+err.Error())
				return
			}
			if len(to.phones.ends) == 0 {
				details = phone.Describe(number.E164).Text()
				if cell != number.E164 {
					raw = cell
				}
			}
			to.phones.add([]byte(number.E164))
		}
		imports.EachMember(c[phoneColumn], addPhone)
		imports.EachMember(c[phonesColumn], addPhone)
		domain := company.Domain(c[domainColumn])
		if domain == "" && c[domainColumn] != "" {
			r.Drop(row.Line, "company_domain: invalid_domain")
		}
		var micros [binary.MaxVarintLen64]byte
		var seen []byte
		if at, ok := imports.Time(c[seenColumn]); ok {
			seen = binary.AppendVarint(micros[:0], at.UnixMicro())
		} else if c[seenColumn] != "" {
			r.Drop(row.Line, "last_seen_at: invalid_time")
		}
		line := [fields]string{
			networkURL: key, emails: to.emails.text(), phones: to.phones.text(), phoneRaw: raw, phoneDetails: details,
			companyDomain: domain, lastSeen: string(seen),
		}
		for place, f := range texts {
			if f > 0 {
				line[place] = c[textColumns+int(f-resolution.FieldFirstName)]
			}
		}
		to.add(line)
		return true
	}
}
