package columns

import (
	"slices"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/internal/rows"
)

// Input rows come in batches of bounded bytes, but answers have no such bound, and the
// leads of a search repeat its row and key. So a batch is built in as many records as
// its answers need.

// RecordBytes is the approximate size of found text in one record.
const RecordBytes = 16 << 20

// Cut is the end of the run of rows that begins at from and whose text takes no more
// than limit bytes of the columns; it is at least one row long. Companies are codes,
// and do not count.
func (b *Batch) Cut(from, limit int) int {
	if b.Answers == nil || from == 0 && b.allBytes() <= limit {
		return b.Len()
	}
	size := 0
	for i := from; i < b.Len(); i++ {
		if size += b.textBytes(i); size > limit && i > from {
			return i
		}
	}
	return b.Len()
}

// textBytes is about how many bytes the text of a row takes in the columns.
func (b *Batch) textBytes(i int) int {
	size := len(b.Reasons[i]) + len(b.Keys.At(i))
	for _, kept := range b.Kept {
		size += kept.ValueLen(i)
	}
	if b.Receipts != nil {
		size += len(b.Receipts[i].ResolutionID)
	}
	if i < b.Answers.Len() && b.Answers.Matched[i] {
		size += b.Answers.Bytes(i) + hemBytes + phoneBytes
	}
	return size
}

// allBytes is at least the sum of textBytes. It takes few steps for columns that are not codes.
func (b *Batch) allBytes() int {
	size := b.Answers.AllBytes() + b.Len()*(hemBytes+phoneBytes) + b.Keys.Bytes()
	for _, reason := range b.Reasons {
		size += len(reason)
	}
	for _, kept := range b.Kept {
		size += len(kept.ValueBytes())
	}
	for i := range b.Receipts {
		size += len(b.Receipts[i].ResolutionID)
	}
	return size
}

const (
	hemBytes   = 32 + 40 + 64 // the first hashes of an answer as columns
	phoneBytes = 16 + 2 + 20  // phone columns: E.164, region, type
)

// Slice returns the rows in [from, to), in the memory of the batch but for a copy of their
// answers.
func (b *Batch) Slice(from, to int) *Batch {
	s := &Batch{
		Source: b.Source, Rows: b.Rows[from:to], Parts: cut(b.Parts, from, to), Outcomes: b.Outcomes[from:to], Reasons: b.Reasons[from:to],
		Keys: b.Keys.Slice(from, to), Emails: cut(b.Emails, from, to), IPClasses: cut(b.IPClasses, from, to), Addrs: cut(b.Addrs, from, to),
		Receipts: cut(b.Receipts, from, to), Origins: cut(b.Origins, from, to), Finds: cut(b.Finds, from, to), Counts: cut(b.Counts, from, to),
	}
	if b.Answers != nil {
		s.Answers = b.Answers.Pick(func(yield func(int) bool) {
			for i := from; i < to && yield(i); i++ {
			}
		})
	}
	if s.hashed = b.hashed; s.hashed {
		for j := range b.hashes {
			if len(b.hashes[j].Data) > 0 {
				s.hashes[j] = b.hashes[j].Slice(from, to)
			}
		}
	}
	for _, c := range b.Kept {
		s.Kept = append(s.Kept, array.NewSlice(c, int64(from), int64(to)).(*array.String))
	}
	return s
}

// Pick returns a copy of some rows, in the given order.
func (b *Batch) Pick(places []int) *Batch {
	p := &Batch{
		Source: b.Source, Rows: pick(b.Rows, places), Parts: pick(b.Parts, places), Outcomes: pick(b.Outcomes, places), Reasons: pick(b.Reasons, places),
		Emails: pick(b.Emails, places), IPClasses: pick(b.IPClasses, places), Addrs: pick(b.Addrs, places),
		Receipts: pick(b.Receipts, places), Origins: pick(b.Origins, places), Finds: pick(b.Finds, places), Counts: pick(b.Counts, places),
	}
	if b.Answers != nil {
		p.Answers = b.Answers.Pick(slices.Values(places))
	}
	p.Keys.Reset()
	for _, i := range places {
		p.Keys.Add(b.Keys.At(i))
	}
	for _, c := range b.Kept {
		p.Kept = append(p.Kept, rows.Pick(c, places))
	}
	return p
}

// pick returns some elements of s, and nil for a slice that the operation does not need.
func pick[T any](s []T, places []int) []T {
	if len(s) == 0 {
		return nil
	}
	some := make([]T, len(places))
	for i, place := range places {
		some[i] = s[place]
	}
	return some
}

// cut returns s[from:to], and nil for a slice that the operation does not need.
func cut[T any](s []T, from, to int) []T {
	if len(s) == 0 {
		return s
	}
	return s[from:to]
}
