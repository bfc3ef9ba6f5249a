package parts

import (
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/sinks"
)

// askedWriter writes what several resolvers say about the distinct keys of a part.
type askedWriter struct {
	sideWriter
	// seen are the hashes of the keys so far, with two bits for each resolver: it has answered, it
	// has an open call.
	seen map[uint64]uint64
}

func (w *askedWriter) finish() error {
	w.seen = nil
	return w.sideWriter.finish()
}

// write writes and counts what the batches before do not have.
func (w *askedWriter) write(b *columns.Batch, t *sinks.Totals) error {
	all := w.fresh(b)
	if len(all) == 0 {
		return nil
	}
	for _, a := range all {
		n := sinks.ResolverTotals{Asked: 1, Credits: int64(a.Receipt.Credits)}
		if a.Outcome == outcome.Matched {
			n.Matched = 1
		}
		t.CountResolver(a.Resolver, n)
	}
	return w.sideWriter.write(func(to *array.RecordBuilder) { columns.AppendAsked(to, b, all) })
}

// fresh is what the batches before do not have. A verifier may say several things about a key.
func (w *askedWriter) fresh(b *columns.Batch) (fresh []columns.Asked) {
	if w.seen == nil {
		w.seen = map[uint64]uint64{}
	}
	type mark struct{ key, bit uint64 }
	var marks []mark // of the row
	for from := 0; from < len(b.Asked); {
		row := b.Asked[from].Row
		key := xxh3.Hash(b.Keys.At(row))
		marks = marks[:0]
		for ; from < len(b.Asked) && b.Asked[from].Row == row; from++ {
			a := b.Asked[from]
			m := mark{key, uint64(1) << (2 * a.Step)}
			if a.Open {
				m.bit <<= 1
			}
			if a.About != "" { // it may be the key itself
				m.key = xxh3.HashStringSeed(a.About, key)
			}
			if w.seen[m.key]&m.bit == 0 {
				fresh = append(fresh, a)
			}
			marks = append(marks, m)
		}
		for _, m := range marks {
			w.seen[m.key] |= m.bit
		}
	}
	return fresh
}
