// Package companies keeps the companies of a directory, which are found by domain.
package companies

import (
	"strconv"

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

// File is the companies of one import. It is safe from many goroutines.
type File struct{ *records.File }

// None is a file without companies.
var None = &File{records.Empty(fields)}

// Open opens a file of Import.
func Open(path string) (*File, error) {
	f, err := records.Open(path, fields)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// Entry is a company and what it points to.
type Entry struct {
	Company  resolution.Company
	industry string
	founded  int32
}

// Fill fills an entry with a row, its texts in the arena. Call it under columnfile.Guard.
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
