package resolution

import (
	"strconv"
	"strings"
)

// Company is a company record. Revenue and EmployeeCount are text ranges as
// their owner wrote them.
type Company struct {
	Name          string  `json:"name,omitempty"`
	Domain        string  `json:"domain,omitempty"`
	WebsiteURL    string  `json:"website_url,omitempty"`
	NetworkURL    string  `json:"network_url,omitempty"` // without scheme
	Industry      *string `json:"industry"`              // null when unknown
	Revenue       string  `json:"revenue,omitempty"`
	EmployeeCount string  `json:"employee_count,omitempty"`
	YearFounded   *int32  `json:"year_founded"` // null when unknown
	Address       Address `json:"address,omitzero"`
	About         string  `json:"about,omitempty"`
}

// CompanyCodes is a column of companies: their codes in a table, 0 for none. Where a company
// is met again, it has its code again, or another one that stands for the same.
type CompanyCodes struct {
	Table CompanyTable
	// Rows, if any, has the companies in place of Table: codes are rows of it.
	Rows  *CompanyRows
	Codes []int32
}

// CompanyRows are the companies of reference data as columns, in the order of the block of a company.
// Row 0 is none. Only rows that are codes of answers may be read: others are not verified.
type CompanyRows struct{ Columns [CompanyColumns]CompanyColumn }

// CompanyColumn is a column: the code of each row, and values by their codes, each of which is there
// once. Code 0 is null. Value i is Bytes[Offsets[i]:Offsets[i+1]]; a column without Offsets has numbers.
type CompanyColumn struct {
	Codes   []uint32
	Offsets []uint64
	Bytes   []byte
	Width   int // of a number
}

// Len is the number of values, with null.
func (c *CompanyColumn) Len() int {
	if c.Offsets != nil {
		return len(c.Offsets) - 1
	}
	return len(c.Bytes) / c.Width
}

// CompanyTable gives companies codes. It is safe from many goroutines, except a CompanyList.
// Without it, every row would have a pointer to a company, and all companies would stay in
// memory.
type CompanyTable interface {
	// Add adds a copy of a company, and returns its code, which is above 0.
	Add(r CompanyRecord) int32
	// AddShared is Add for a company that does not change: the same pointer may have its code
	// again.
	AddShared(c *Company) int32
	// TakesRows reports whether CompanyRows may take the place of the table.
	TakesRows() bool
}

// CompanyRecord is a company by its fields.
type CompanyRecord struct {
	Fields [CompanyFields]CompanyField
}

// CompanyField is a field of a company.
type CompanyField struct {
	Text string // "" if it is not known
}

// CompanyColumns is how many columns a company has.
const CompanyColumns = 17

// The fields of a CompanyRecord.
const (
	CompanyDomain = iota
	CompanyName
	CompanyWebsiteURL
	CompanyNetworkURL
	CompanyIndustry
	CompanyRevenue
	CompanyEmployeeCount
	CompanyYearFounded // decimal
	CompanyStreet
	CompanyZipCode
	CompanyCity
	CompanyState
	CompanyAbout
	CompanyFields
)

// Record is the company as a record.
func (c *Company) Record() (r CompanyRecord) {
	for i, text := range c.texts() {
		if text != nil {
			r.Fields[i].Text = *text
		}
	}
	if c.YearFounded != nil {
		r.Fields[CompanyYearFounded].Text = strconv.Itoa(int(*c.YearFounded))
	}
	return r
}

// IsEmpty reports whether nothing is known of the company.
func (r *CompanyRecord) IsEmpty() bool { return r.Fields == [CompanyFields]CompanyField{} }

// Company is a copy of the record.
func (r *CompanyRecord) Company() *Company {
	c := Company{Industry: new("")}
	for i, text := range c.texts() {
		if text != nil {
			*text = r.Fields[i].Text
		}
	}
	if *c.Industry == "" {
		c.Industry = nil
	}
	if year, err := strconv.ParseInt(r.Fields[CompanyYearFounded].Text, 10, 32); err == nil {
		c.YearFounded = new(int32(year))
	}
	return c.Clone()
}

// texts are the texts of a company by their fields; nil for one that is null or a number.
func (c *Company) texts() [CompanyFields]*string {
	return [...]*string{
		CompanyDomain: &c.Domain, CompanyName: &c.Name, CompanyWebsiteURL: &c.WebsiteURL, CompanyNetworkURL: &c.NetworkURL,
		CompanyIndustry: c.Industry, CompanyRevenue: &c.Revenue, CompanyEmployeeCount: &c.EmployeeCount, CompanyYearFounded: nil,
		CompanyStreet: &c.Address.Street, CompanyZipCode: &c.Address.ZipCode, CompanyCity: &c.Address.City,
		CompanyState: &c.Address.State, CompanyAbout: &c.About,
	}
}

// CompanyList is the table of answers that are soon copied or sent. It gives its companies
// back. One goroutine at a time may add to it.
type CompanyList struct{ all []*Company }

// Add adds a copy.
func (l *CompanyList) Add(r CompanyRecord) int32 { return l.AddShared(r.Company()) }

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

// TakesRows is false, because the companies are given back.
func (l *CompanyList) TakesRows() bool { return false }

// Clone is a copy that shares no memory. Its texts are parts of one.
func (c *Company) Clone() *Company {
	kept := *c
	if c.Industry != nil {
		kept.Industry = new(*c.Industry)
	}
	if c.YearFounded != nil {
		kept.YearFounded = new(*c.YearFounded)
	}
	var all strings.Builder
	all.Grow(kept.size())
	for _, t := range kept.texts() {
		if t != nil {
			from := all.Len()
			all.WriteString(*t)
			*t = all.String()[from:]
		}
	}
	return &kept
}

// size is the number of bytes of the texts.
func (c *Company) size() (n int) {
	for _, t := range c.texts() {
		if t != nil {
			n += len(*t)
		}
	}
	return n
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
