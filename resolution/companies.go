package resolution

import "strings"

// CompanyCodes is a column of companies: their codes in a table, 0 for none. Where a company
// is met again, it has its code again, or another one that stands for the same.
type CompanyCodes struct {
	Table CompanyTable
	Codes []int32
}

// CompanyTable gives companies codes. It is safe from many goroutines, except a CompanyList.
// Without it, every row would have a pointer to a company, and all companies would stay in
// memory.
type CompanyTable interface {
	// Add copies a company, and returns its code, which is above 0.
	Add(c *Company) int32
	// AddShared is Add for a company that does not change: the same pointer may have its code
	// again.
	AddShared(c *Company) int32
	// Memory returns what begin returned the first time: what those who add companies remember
	// of their codes, which lives as long as the table. Of a table that is used for one answer,
	// it is nil.
	Memory(begin func() any) any
}

// CompanyList is the table of answers that are soon copied or sent. It gives its companies
// back. One goroutine at a time may add to it.
type CompanyList struct{ all []*Company }

// Add is that of CompanyTable.
func (l *CompanyList) Add(c *Company) int32 { return l.AddShared(c.Clone()) }

// AddShared keeps the company.
func (l *CompanyList) AddShared(c *Company) int32 {
	l.all = append(l.all, c)
	return int32(len(l.all))
}

// Reset makes the list empty. Its companies stay as they are.
func (l *CompanyList) Reset() {
	clear(l.all)
	l.all = l.all[:0]
}

// Memory is nil.
func (l *CompanyList) Memory(func() any) any { return nil }

// Clone is a copy that shares no memory. Its texts are parts of one.
func (c *Company) Clone() *Company {
	kept := *c
	texts := []*string{&kept.Name, &kept.Domain, &kept.WebsiteURL, &kept.NetworkURL, &kept.Revenue, &kept.EmployeeCount,
		&kept.Address.Street, &kept.Address.ZipCode, &kept.Address.City, &kept.Address.State, &kept.About}
	if c.Industry != nil {
		kept.Industry = new(*c.Industry)
		texts = append(texts, kept.Industry)
	}
	if c.YearFounded != nil {
		kept.YearFounded = new(*c.YearFounded)
	}
	size := 0
	for _, t := range texts {
		size += len(*t)
	}
	var all strings.Builder
	all.Grow(size)
	for _, t := range texts {
		all.WriteString(*t)
	}
	rest := all.String()
	for _, t := range texts {
		*t, rest = rest[:len(*t)], rest[len(*t):]
	}
	return &kept
}

// Company is the company of an answer, nil without one. The table is a CompanyList: others
// do not give companies back.
func (a *Answers) Company(i int) *Company {
	list, is := a.Companies.Table.(*CompanyList)
	if !is || i >= len(a.Companies.Codes) || a.Companies.Codes[i] == 0 {
		return nil
	}
	return list.all[a.Companies.Codes[i]-1]
}

// copyCompany sets the company of the last row to that of an answer of another Answers.
func (a *Answers) copyCompany(from *Answers, j int) {
	switch {
	case j >= len(from.Companies.Codes) || from.Companies.Codes[j] == 0:
	case from.Companies.Table == a.Companies.Table:
		a.SetCompany(from.Companies.Codes[j])
	default:
		a.SetCompany(a.Companies.Table.AddShared(from.Company(j)))
	}
}
