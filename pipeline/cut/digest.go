package cut

import (
	"encoding/hex"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/sources"
)

// Digest is a checksum of the rows of a part: XXH3-128, which is fast enough for every row,
// of file names, row numbers, values and malformed lines. It does not depend on batches. It
// detects changed inputs, but it is no protection against inputs that were made to have the
// same checksum. The zero value is ready to use.
type Digest struct {
	rows, rejects xxh3.Hasher
	columns       []columnDigest
	source        string
	count         int64
	lengths       []int32
}

// columnDigest is a checksum of the values of a column and of their lengths, which is -1 for
// null.
type columnDigest struct{ values, lengths xxh3.Hasher }

// Add adds the rows of a batch.
func (d *Digest) Add(b *sources.Batch) {
	if b.Source != d.source {
		fmt.Fprintf(&d.rows, "%d %q\n", d.count, b.Source)
		d.source = b.Source
	}
	d.count += int64(b.Len())
	d.rows.Write(arrow.Int64Traits.CastToBytes(b.Rows))
	if d.columns == nil {
		d.columns = make([]columnDigest, len(b.Columns))
	}
	for i, c := range b.Columns {
		d.columns[i].values.Write(c.ValueBytes())
		d.columns[i].lengths.Write(arrow.Int32Traits.CastToBytes(d.lengthsOf(c)))
	}
	for _, r := range b.Rejects {
		fmt.Fprintf(&d.rejects, "%d %s %d\n", r.Line, r.Reason, len(r.Raw))
		d.rejects.Write(r.Raw)
	}
}

func (d *Digest) lengthsOf(c *array.String) []int32 {
	offsets := c.ValueOffsets()
	d.lengths = d.lengths[:0]
	for i := range c.Len() {
		d.lengths = append(d.lengths, offsets[i+1]-offsets[i])
	}
	for i := 0; c.NullN() > 0 && i < c.Len(); i++ {
		if c.IsNull(i) {
			d.lengths[i] = -1
		}
	}
	return d.lengths
}

// Sum returns the checksum of all added rows, in hex.
func (d *Digest) Sum() string {
	all := xxh3.New()
	for _, part := range append([]*xxh3.Hasher{&d.rows, &d.rejects}, d.columnHashers()...) {
		sum := part.Sum128().Bytes()
		all.Write(sum[:])
	}
	sum := all.Sum128().Bytes()
	return hex.EncodeToString(sum[:])
}

func (d *Digest) columnHashers() (hashers []*xxh3.Hasher) {
	for i := range d.columns {
		hashers = append(hashers, &d.columns[i].values, &d.columns[i].lengths)
	}
	return hashers
}
