// Package companies keeps the companies of a directory, which are found by domain.
package companies

import (
	"unsafe"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// File is the companies of one import. It is safe from many goroutines.
type File struct{ *keyed.File }

// None is a file without companies.
var None = &File{keyed.Empty(resolution.CompanyFields)}

// Open opens a file of Import.
func Open(in disk.Folder, name string) (*File, error) {
	f, err := keyed.Open(in, name, resolution.CompanyFields)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// Record is the company of a row, with its texts where they are. Call it, and read them, under
// keyed.Guard.
func (f *File) Record(row uint32) resolution.CompanyRecord {
	r, next := resolution.CompanyRecord{Memory: f.Memory()}, f.Fields(row)
	for i := range r.Fields {
		code, text := next.Next()
		if code >= 0 {
			text = f.Dictionary(i).At(code)
		}
		r.Fields[i] = resolution.CompanyField{Text: unsafe.String(unsafe.SliceData(text), len(text)), Number: code + 1}
	}
	return r
}
