package parquet

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/apache/arrow/go/v17/parquet/metadata"
)

// Close ends the file with its footer.
func (e *Encoder) Close() error {
	if err := e.Flush(); err != nil {
		return err
	}
	for _, c := range slices.Backward(e.columns) { // the next file's first column takes memory first: each has its own again
		if r, ok := c.(*repeatingColumn); ok {
			r.close()
		}
	}
	footer, err := e.meta.Finish()
	if err != nil {
		return err
	}
	sortEncodings(footer)
	n, err := footer.WriteTo(e.out, nil)
	if err != nil {
		return err
	}
	tail := binary.LittleEndian.AppendUint32(nil, uint32(n))
	_, err = e.out.Write(append(tail, parquetMagic...))
	return err
}

// sortEncodings sorts the page counts by encoding of every chunk. Arrow lists
// them in the random order of a map, so the footer of a chunk with both
// dictionary and plain pages would vary.
func sortEncodings(footer *metadata.FileMetaData) {
	for _, group := range footer.RowGroups {
		for _, chunk := range group.Columns {
			stats := chunk.MetaData.EncodingStats
			sort.Slice(stats, func(i, j int) bool {
				a, b := stats[i], stats[j]
				return a.PageType > b.PageType || a.PageType == b.PageType && a.Encoding > b.Encoding
			})
		}
	}
}
