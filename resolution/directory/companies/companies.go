// Package companies keeps the companies of a directory, which are found by domain.
package companies

import (
	"runtime/debug"
	"strconv"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/records"
)

// The fields of a record, in their order.
const (
	domain = iota
	name
	websiteURL
	networkURL
	industry
	revenue
	employeeCount
	yearFounded
	street
	zipCode
	city
	state
	about
	fields
)

// File has the companies of an import. It is safe from many goroutines.
type File struct{ *records.File }

// Open opens a file of Import.
func Open(path string) (*File, error) {
	f, err := records.Open(path, fields)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// Company finds a company by its domain in canonical form; nil without one.
func (f *File) Company(domain string) (c *resolution.Company, err error) {
	defer columnfile.Guard(&err, debug.SetPanicOnFault(true))
	row := f.Find(domain)
	if row == records.None {
		return nil, nil
	}
	one := &struct {
		Entry
		arena records.Arena
	}{}
	f.Fill(row, &one.arena, &one.Entry)
	return &one.Company, nil
}

// Entry is memory for a company and its values.
type Entry struct {
	Company  resolution.Company
	industry string
	founded  int32
}

// Fill fills an entry with a row, whose texts are in the arena. Call it under
// columnfile.Guard.
func (f *File) Fill(row uint32, arena *records.Arena, e *Entry) {
	var t [fields]string
	f.Read(row, arena, t[:])
	e.Company = resolution.Company{
		Domain: t[domain], Name: t[name], WebsiteURL: t[websiteURL], NetworkURL: t[networkURL], Revenue: t[revenue],
		EmployeeCount: t[employeeCount], About: t[about],
		Address: resolution.Address{Street: t[street], ZipCode: t[zipCode], City: t[city], State: t[state]},
	}
	if e.industry = t[industry]; e.industry != "" {
		e.Company.Industry = &e.industry
	}
	if year, err := strconv.ParseInt(t[yearFounded], 10, 32); err == nil {
		e.founded = int32(year)
		e.Company.YearFounded = &e.founded
	}
}

// FillAll fills the entries of the domains that are not empty. Without a company, an entry
// has only the domain. Call it under columnfile.Guard.
func (f *File) FillAll(domains []string, arena *records.Arena, entries []Entry) {
	var rows [together]uint32
	for len(domains) > 0 {
		n := min(together, len(domains))
		f.FindAll(domains[:n], rows[:n])
		for i, row := range rows[:n] {
			if row != records.None {
				f.Fill(row, arena, &entries[i])
			} else {
				entries[i].Company = resolution.Company{Domain: domains[i]}
			}
		}
		domains, entries = domains[n:], entries[n:]
	}
}

// together is how many domains are looked up side by side.
const together = 256
