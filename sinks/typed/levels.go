package typed

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
)

// levelPages are pages with as many levels as values. In a damaged page that has fewer, the
// implementation of Arrow (v17, ReadBatch) would look for the others for ever.
type levelPages struct {
	file.PageReader
	leaf *Leaf
	err  error
}

// Next is that of file.PageReader.
func (p *levelPages) Next() bool {
	if p.err != nil || !p.PageReader.Next() {
		return false
	}
	if page := p.Page(); page != nil && !p.hasAll(page) {
		p.err = errors.New("a page has fewer levels than values")
	}
	return p.err == nil
}

// Err is that of file.PageReader.
func (p *levelPages) Err() error { return errors.Join(p.err, p.PageReader.Err()) }

// hasAll reports whether Arrow can read all levels of a page, or refuses it by itself.
func (p *levelPages) hasAll(page file.Page) bool {
	data, values := page.Data(), page.NumValues()
	section := func(most int16, encoding parquet.Encoding, size int) bool {
		if most == 0 && size < 0 { // there is none
			return true
		}
		runs := data
		if size < 0 && encoding != parquet.Encodings.RLE { // whose size Arrow checks
			size = (int(values)*bits.Len16(uint16(most)) + 7) / 8
		} else if size < 0 {
			if len(data) < 4 {
				return true
			}
			size, runs = 4+int(int32(binary.LittleEndian.Uint32(data))), data[4:]
		}
		if size < 0 || size > len(data) {
			return true
		}
		data = data[size:]
		return encoding != parquet.Encodings.RLE || hasLevels(runs, most, values)
	}
	switch d := page.(type) {
	case *file.DataPageV1:
		return section(p.leaf.MaxRepetition, d.RepetitionLevelEncoding(), -1) && section(p.leaf.MaxDefinition, d.DefinitionLevelEncoding(), -1)
	case *file.DataPageV2:
		return section(p.leaf.MaxRepetition, parquet.Encodings.RLE, int(d.RepetitionLevelByteLen())) && section(p.leaf.MaxDefinition, parquet.Encodings.RLE, int(d.DefinitionLevelByteLen()))
	}
	return true
}

// hasLevels reports whether runs have so many levels of up to most. It goes on behind the end of the
// runs, as Arrow does.
func hasLevels(runs []byte, most int16, values int32) bool {
	width := int64(bits.Len16(uint16(most)))
	for left := int64(values); left > 0 && width > 0; {
		run, size := binary.Uvarint(runs)
		if size <= 0 {
			return false
		}
		runs = runs[size:]
		count, bytes := int64(uint32(run>>1)), (width+7)/8
		if run&1 == 1 {
			count *= 8
			bytes = (min(count, left)*width + 7) / 8
		}
		if count == 0 || count > math.MaxInt32 || bytes > int64(len(runs)) {
			return false
		}
		left, runs = left-count, runs[bytes:]
	}
	return true
}
