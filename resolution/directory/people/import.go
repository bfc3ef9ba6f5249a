package people

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Columns are the columns of a file of people.
var Columns = imports.Columns{
	Names: []string{"network_url", "first_name", "last_name", "headline", "job_title", "seniority", "department",
		"email", "emails", "phones", "street", "zip_code", "city", "state", "company_domain", "last_seen_at", "phone"},
	Required: []string{"network_url"},
}

// repeated are the fields with texts that many people share.
var repeated = []bool{firstName: true, lastName: true, headline: true, jobTitle: true, seniority: true, department: true,
	phones: true, phoneRaw: false, street: true, zipCode: true, city: true, state: true, companyDomain: true, lastSeen: false}

// Import reads r.Source and writes a file.
// Of lines with the same profile address, it keeps the last. Of people with the same email,
// the first is found by it, and people who have it as it is come before those who have it
// in the uid2 or google form.
func Import(ctx context.Context, options imports.Options, r *imports.Report, to imports.File) (_ imports.Result, err error) {
	w := keyed.NewWriter(to, to.Scratch, repeated)
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
		imports.EachMember(c[7], addEmail)
		imports.EachMember(c[8], addEmail)
		to.phones.reset()
		raw := "" // of the first
		addPhone := func(cell string) {
			number, err := phone.Parse(cell, o.DefaultRegion)
			if err != nil {
				r.Drop(row.Line, "phone: "+err.Error())
				return
			}
			if len(to.phones.ends) == 0 && cell != number.E164 {
				raw = cell
			}
			to.phones.add([]byte(number.E164))
		}
		imports.EachMember(c[16], addPhone)
		imports.EachMember(c[9], addPhone)
		domain := company.Domain(c[14])
		if domain == "" && c[14] != "" {
			r.Drop(row.Line, "company_domain: invalid_domain")
		}
		var micros [binary.MaxVarintLen64]byte
		var seen []byte
		if at, ok := imports.Time(c[15]); ok {
			seen = binary.AppendVarint(micros[:0], at.UnixMicro())
		} else if c[15] != "" {
			r.Drop(row.Line, "last_seen_at: invalid_time")
		}
		to.add([fields]string{
			networkURL: key, firstName: c[1], lastName: c[2], headline: c[3], jobTitle: c[4], seniority: c[5], department: c[6],
			emails: to.emails.text(), phones: to.phones.text(), phoneRaw: raw, street: c[10], zipCode: c[11], city: c[12], state: c[13],
			companyDomain: domain, lastSeen: string(seen),
		})
		return true
	}
}
