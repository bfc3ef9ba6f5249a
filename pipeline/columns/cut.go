package columns

import (
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/resolution"
)

// Input rows come in batches of bounded bytes; what is found for them has no
// such bound. A batch is therefore built in as many records as its leads need.

// Cut is the end of the run of rows that begins at from and whose leads hold
// no more than limit bytes; it is at least one row long.
func (b *Batch) Cut(from, limit int) int {
	if b.Leads == nil && b.Companies == nil {
		return b.Len()
	}
	size := 0
	for i := from; i < b.Len(); i++ {
		if size += textBytes(b.lead(i), b.company(i)); size > limit && i > from {
			return i
		}
	}
	return b.Len()
}

// textBytes is about what a row's lead adds to the columns.
func textBytes(l *resolution.Lead, c *resolution.Company) int {
	size := len(c.About) + len(c.Name) + len(c.WebsiteURL) + len(c.NetworkURL) + len(c.Revenue) + len(c.EmployeeCount) + addressBytes(c.Address)
	if l == nobody {
		return size
	}
	size += len(l.Headline) + len(l.FullName) + len(l.FirstName) + len(l.LastName) + len(l.JobTitle) + len(l.NetworkURL) + addressBytes(l.Address)
	for _, e := range l.Emails {
		size += len(e.Email)
	}
	return size + 64*len(l.HashedEmails) + 16*len(l.Phones)
}

func addressBytes(a resolution.Address) int {
	return len(a.Street) + len(a.ZipCode) + len(a.City) + len(a.State)
}

// Slice is the rows from up to to. It shares the batch's memory.
func (b *Batch) Slice(from, to int) *Batch {
	s := &Batch{
		Source: b.Source, Rows: b.Rows[from:to], Outcomes: b.Outcomes[from:to], Reasons: b.Reasons[from:to],
		Keys:  Strings{Data: b.Keys.Data, Offsets: b.Keys.Offsets[from : to+1]},
		Leads: cut(b.Leads, from, to), Companies: cut(b.Companies, from, to), Emails: cut(b.Emails, from, to),
		IPClasses: cut(b.IPClasses, from, to), OrgTypes: cut(b.OrgTypes, from, to), Addrs: cut(b.Addrs, from, to),
	}
	for _, c := range b.Kept {
		s.Kept = append(s.Kept, array.NewSlice(c, int64(from), int64(to)).(*array.String))
	}
	return s
}

// cut is s[from:to], and nothing of a slice that the operation does not need.
func cut[T any](s []T, from, to int) []T {
	if len(s) == 0 {
		return s
	}
	return s[from:to]
}
