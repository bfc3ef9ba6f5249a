package exchange

import (
	"strings"
	"sync"

	"github.com/leadetl/leadetl/resolution"
)

// Companies are records of companies, by the text they were read from. Columns are made once for
// each record. With a record for each answer, whose texts were parts of its body, these were most
// of the memory of a run. It is safe from many goroutines.
type Companies struct {
	mu    sync.Mutex
	known map[string]*resolution.Company
	bytes int
}

// maxCompanyBytes bounds the texts of the known companies: some ten thousand.
const maxCompanyBytes = 8 << 20

// Of returns the company of a text, which read reads if the text is not known; nil if nothing is
// in it. It is shared, and must not be changed. A nil Companies knows none.
func (k *Companies) Of(written string, read func() *resolution.Company) *resolution.Company {
	if k == nil {
		return read()
	}
	k.mu.Lock()
	c, found := k.known[written]
	k.mu.Unlock()
	if found {
		return c
	}
	c = read()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil || k.bytes > maxCompanyBytes {
		k.known, k.bytes = map[string]*resolution.Company{}, 0
	}
	k.known[strings.Clone(written)] = c
	k.bytes += 2 * len(written) // the record has hardly more text than that
	return c
}
