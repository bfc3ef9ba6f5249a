package pipeline

import (
	"encoding/hex"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/sources"
)

// inputDigest is a checksum of the rows of a part as they were read: XXH3-128
// (fast enough to be taken of every row) of file names, row numbers, values
// and malformed lines. It tells a changed input from the same one; it is no
// defence against somebody who wants two inputs to look the same.
type inputDigest struct{ h *xxh3.Hasher }

func newInputDigest() inputDigest { return inputDigest{xxh3.New()} }

func (d inputDigest) add(b *sources.Batch) {
	d.h.WriteString(b.Source)
	d.h.Write(arrow.Int64Traits.CastToBytes(b.Rows))
	for _, c := range b.Columns {
		d.h.Write(arrow.Int32Traits.CastToBytes(c.ValueOffsets()))
		d.h.Write(c.ValueBytes())
		if c.NullN() > 0 {
			for i := range c.Len() {
				if c.IsNull(i) {
					d.h.Write(arrow.Int32Traits.CastToBytes([]int32{int32(i)}))
				}
			}
		}
	}
	for _, r := range b.Rejects {
		d.h.Write(arrow.Int64Traits.CastToBytes([]int64{r.Line}))
		d.h.WriteString(r.Reason)
		d.h.Write(r.Raw)
	}
}

func (d inputDigest) sum() string {
	sum := d.h.Sum128().Bytes()
	return hex.EncodeToString(sum[:])
}
