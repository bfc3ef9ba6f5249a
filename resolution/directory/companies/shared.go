package companies

import (
	"sync"
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/records"
)

// Shared keeps companies that were read, so that all who ask get the same one. It
// is bounded, and what does not fit is read again. It is safe from many
// goroutines.
type Shared struct {
	slots []atomic.Pointer[resolution.Company]
	bytes atomic.Int64 // of texts

	reading sync.Mutex
	arena   records.Arena // of the companies of a File that are kept
}

const (
	maxShared      = 1 << 17
	maxSharedBytes = 32 << 20
)

// NewShared makes room for n companies.
func NewShared(n int) *Shared {
	return &Shared{slots: make([]atomic.Pointer[resolution.Company], min(n, maxShared))}
}

// Get returns company i, which read reads. It must not be changed.
func (s *Shared) Get(i uint32, read func() *resolution.Company) *resolution.Company {
	if int(i) >= len(s.slots) {
		return read()
	}
	if c := s.slots[i].Load(); c != nil {
		return c
	}
	c := read()
	a := c.Address
	size := len(c.Name) + len(c.Domain) + len(c.WebsiteURL) + len(c.NetworkURL) + len(c.Revenue) + len(c.EmployeeCount) +
		len(a.Street) + len(a.ZipCode) + len(a.City) + len(a.State) + len(c.About)
	if s.bytes.Add(int64(size)) <= maxSharedBytes {
		s.slots[i].Store(c)
	}
	return c
}

// Shared returns the company of a row, which must not be changed. Call it under
// columnfile.Guard.
func (f *File) Shared(row uint32) *resolution.Company {
	return f.shared.Get(row, func() *resolution.Company {
		one := &Entry{}
		if int(row) >= len(f.shared.slots) || f.shared.bytes.Load() > maxSharedBytes {
			f.Fill(row, &records.Arena{}, one) // it is not kept
			return &one.Company
		}
		f.shared.reading.Lock()
		defer f.shared.reading.Unlock()
		f.Fill(row, &f.shared.arena, one)
		return &one.Company
	})
}
