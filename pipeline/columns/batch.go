package columns

import (
	"net/netip"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
)

// Batch is a run of input rows and what became of each: element i of every
// slice belongs to row i. Slices that an operation does not need are nil.
type Batch struct {
	Source string          // name of the input file
	Rows   []int64         // number of the row in its file
	Kept   []*array.String // values of Settings.Kept, in that order

	Outcomes []outcome.Outcome
	Reasons  []string // empty on a match
	// Keys are the identifiers' canonical forms; rejected rows have none.
	Keys Strings
	// Leads holds what was found, nil elements where nothing was. The whole
	// slice is nil when the answers follow from the keys alone.
	Leads []*resolution.Lead
	// Emails are the cleaned addresses of the rows with a key; email_to_hem.
	Emails []email.Address
	// IPClasses and OrgTypes describe the addresses; ip_to_company.
	IPClasses, OrgTypes []string
	// Addrs are the parsed addresses of the rows with a key; ip operations.
	Addrs []netip.Addr
	// Receipts say what is known of the service's answers; nil when the
	// embedded engine answered.
	Receipts []outcome.Receipt
	// Finds say where each lead stands among the results of its search, beside
	// Leads; keyword_to_lead.
	Finds []Find
	// Counts are what the searches count, nil elements where nothing was
	// answered; keyword_to_lead_count.
	Counts []*resolution.SearchCount
}

// Find is one row of a keyword search's results: of a lead, or of a search that
// found nobody or was not answered. Its zero members are null in the output.
type Find struct {
	SearchRow       int64 // number of the search's row in its file
	Page            int32 // from 1
	LeadID          string
	LeadType        string // b2b or b2c, empty when unknown
	MatchedKeywords []string
	SearchedOn      time.Time // its day in UTC is written
}

// Len is the number of rows.
func (b *Batch) Len() int { return len(b.Rows) }

// Reset empties the batch for n rows and keeps its memory.
func (b *Batch) Reset(n int) {
	b.Outcomes = resize(b.Outcomes, n)
	b.Reasons = resize(b.Reasons, n)
	b.Keys.Reset()
	b.Leads = nil
	b.Receipts, b.Finds, b.Counts = nil, nil, nil
	b.Emails, b.IPClasses, b.OrgTypes, b.Addrs = b.Emails[:0], b.IPClasses[:0], b.OrgTypes[:0], b.Addrs[:0]
}

// resize returns s with n zero elements.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Strings is a list of strings in the layout of an Arrow string array: value
// i is Data[Offsets[i]:Offsets[i+1]].
type Strings struct {
	Data    []byte
	Offsets []int32
}

// Reset makes the list empty.
func (s *Strings) Reset() {
	s.Data = s.Data[:0]
	s.Offsets = append(s.Offsets[:0], 0)
}

// End ends the value that was appended to Data.
func (s *Strings) End() { s.Offsets = append(s.Offsets, int32(len(s.Data))) }

// Len is the number of strings.
func (s *Strings) Len() int { return len(s.Offsets) - 1 }

// At is value i; it lasts until the next Reset.
func (s *Strings) At(i int) []byte { return s.Data[s.Offsets[i]:s.Offsets[i+1]] }
