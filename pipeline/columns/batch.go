package columns

import (
	"net/netip"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
)

// Batch has consecutive input rows and the results for them: element i of every slice
// belongs to row i. Slices that an operation does not need are nil.
type Batch struct {
	Source string          // name of the input file
	Rows   []int64         // number of the row in its file
	Kept   []*array.String // values of Settings.Kept, in that order

	Outcomes []outcome.Outcome
	Reasons  []string // empty on a match
	// Keys are the identifiers in canonical form; empty for rejected rows.
	Keys Strings
	// Typed are the identifiers as typed; operations on profiles.
	Typed *array.String
	// Leads has what was found, or nil. The slice is nil if the answers follow from
	// the keys alone.
	Leads []*resolution.Lead
	// Companies are those of the rows, in place of those of Leads: where the embedded engine
	// answers in columns. Without a table, Leads have them.
	Companies CompanyCodes
	// People are the answers to all rows, in place of Leads: operations that find
	// people with the embedded engine.
	People *resolution.People
	// Profiles are the network_url of the rows, in place of Leads: email_to_hem of addresses
	// with the embedded engine, where nothing moves rows.
	Profiles *resolution.Texts
	// Emails are the cleaned addresses of the rows with a key; email_to_hem.
	Emails []email.Address
	// IPClasses and OrgTypes describe the addresses; ip_to_company.
	IPClasses, OrgTypes []string
	// Addrs are the parsed addresses of the rows with a key; ip operations.
	Addrs []netip.Addr
	// Receipts are those of the answers of a service; nil if the embedded engine
	// answered.
	Receipts []outcome.Receipt
	// Finds are the places of Leads among the results of their searches;
	// keyword_to_lead.
	Finds []Find
	// Counts are the counts of searches, nil without an answer;
	// keyword_to_lead_count.
	Counts []*resolution.SearchCount
}

// Find is a row of the results of a keyword search: for a lead, or for a search that
// found nobody or was not answered. Zero members are null in the output.
type Find struct {
	SearchRow       int64 // number of the row of the search in its file
	Page            int32 // from 1
	LeadID          string
	LeadType        string // b2b or b2c, empty when unknown
	MatchedKeywords []string
	SearchedOn      time.Time // written as its day in UTC
}

// Len is the number of rows.
func (b *Batch) Len() int { return len(b.Rows) }

// Reset makes the batch empty for n rows, in the same memory.
func (b *Batch) Reset(n int) {
	b.Outcomes = resize(b.Outcomes, n)
	b.Reasons = resize(b.Reasons, n)
	b.Keys.Reset()
	b.Leads, b.Companies, b.People, b.Profiles = nil, CompanyCodes{}, nil, nil
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

// At returns value i, which is valid until the next Reset.
func (s *Strings) At(i int) []byte { return s.Data[s.Offsets[i]:s.Offsets[i+1]] }
