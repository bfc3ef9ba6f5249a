package columns

import (
	"net/netip"

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
	// Parts say which identifier of its cell a row has, from 1; nil unless a cell may become
	// several rows.
	Parts []int32
	// More counts the rows with a key whose cell has more than its identifier.
	More int

	Outcomes []outcome.Outcome
	Reasons  []string // empty on a match
	// Keys are the identifiers in canonical form; empty for rejected rows.
	Keys resolution.Texts
	// Persons are the values of a person that rows have besides their key, as JSON; nil without any.
	Persons []string
	// Typed are the identifiers as typed; operations on profiles.
	Typed *array.String
	// Answers are those to the keys; nil before anybody is asked.
	Answers *resolution.Answers
	// Emails are the cleaned addresses of the rows with a key; email_to_hem.
	Emails []email.Address
	// IPClasses describe the addresses; ip_to_company.
	IPClasses []string
	// Addrs are the parsed addresses of the rows with a key; ip operations.
	Addrs []netip.Addr
	// Receipts are those of the answers of a service; nil if the embedded engine
	// answered.
	Receipts []outcome.Receipt
	// Origins say which of several resolvers answered, and which were passed over; nil says nothing.
	Origins []Origin
	// Asked are the answers of several resolvers to the keys, by row; nil if there is one.
	Asked []Asked
	// Finds are the places of leads among the results of their searches;
	// keyword_to_lead.
	Finds []Find
	// Counts are the counts of searches, nil without an answer;
	// keyword_to_lead_count.
	Counts []*resolution.SearchCount

	// hashes are the digests of the keys by the order of digests, a value a row, once they
	// are hashed.
	hashes [3]resolution.Texts
	hashed bool
}

// Origin says which resolvers the values of a row are from, by their names.
type Origin struct {
	AnsweredBy string   // the first with a match; "" without one
	Wanted     []string // those of Settings.Want, by column; "" for one without a value
	Skipped    string   // the resolvers that were passed over, and why: NAME:reason;NAME:reason
}

// origin is that of a row.
func (b *Batch) origin(row int) Origin {
	if b.Origins == nil {
		return Origin{}
	}
	return b.Origins[row]
}

// Find is the place of a row among the results of a keyword search: of a lead, or of a
// search without leads or without an answer. Zero members are null in the output.
type Find struct {
	SearchRow int64 // number of the row of the search in its file
	Page      int32 // from 1
}

// Len is the number of rows.
func (b *Batch) Len() int { return len(b.Rows) }

// Reset makes the batch empty for n rows, in the same memory.
func (b *Batch) Reset(n int) {
	b.Outcomes = resize(b.Outcomes, n)
	b.Reasons = resize(b.Reasons, n)
	b.Keys.Reset()
	b.Answers, b.Receipts, b.Origins, b.Asked, b.Finds, b.Counts, b.Parts, b.More = nil, nil, nil, nil, nil, nil, nil, 0
	b.hashed = false
	b.Emails, b.IPClasses, b.Addrs = b.Emails[:0], b.IPClasses[:0], b.Addrs[:0]
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
