package parquet

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/metadata"
)

// packedDictionary is the page of a dictionary as the file has it. A column packs it while others
// pack theirs: Arrow's page writer does it when it writes the page, in two new buffers.
type packedDictionary struct {
	values, plain int    // of the dictionary, and its bytes before compression
	data          []byte // the page without its header
}

// pageSizes is what a page writer of Arrow has written.
type pageSizes interface {
	NumValues() int64
	DataPageoffset() int64
	TotalCompressedSize() int64
	TotalUncompressedSize() int64
}

// pack makes the page, in the memory of the page before. It has the memory of the dictionary if
// nothing compresses it.
func (p *packedDictionary) pack(d *dictionary, compress func(dst, src []byte) []byte) {
	p.values, p.plain = d.len(), len(d.data)
	if compress == nil {
		p.data = d.data
	} else {
		p.data = compress(p.data[:cap(p.data)], d.data)
	}
}

// header is that of the page, in Thrift's compact protocol.
// Source: Apache Parquet format, parquet.thrift, PageHeader and DictionaryPageHeader.
func (p *packedDictionary) header() []byte {
	const number, structure, no, end = 5, 12, 2, 0 // types of members, and what ends them
	head := binary.AppendVarint([]byte{1<<4 | number}, int64(2 /* DICTIONARY_PAGE */))
	head = binary.AppendVarint(append(head, 1<<4|number), int64(p.plain))
	head = binary.AppendVarint(append(head, 1<<4|number), int64(len(p.data)))
	head = binary.AppendVarint(append(head, 4<<4|structure, 1<<4|number), int64(p.values))
	head = binary.AppendVarint(append(head, 1<<4|number), int64(parquet.Encodings.PlainDict))
	return append(head, 1<<4|no, end, end) // is_sorted
}

// flush writes the page, and then pages of numbers, as a chunk.
func (p *packedDictionary) flush(g *rowGroup, chunk *metadata.ColumnChunkMetaDataBuilder, out file.PageWriter, pool *PagePool, pages []*page) error {
	start, head := g.out.Tell(), p.header()
	for _, some := range [][]byte{head, p.data} {
		if _, err := g.out.Write(some); err != nil {
			return err
		}
	}
	g.bytes += int64(p.plain)
	written, plain := int64(len(head)+len(p.data)), int64(len(head)+p.plain)
	if pool.Growing {
		p.data = nil
	}
	if err := g.writePages(out, pool, pages, parquet.Encodings.PlainDict); err != nil {
		return err
	}
	sizes := out.(pageSizes)
	err := chunk.Finish(metadata.ChunkMetaInfo{
		NumValues: sizes.NumValues(), DictPageOffset: start, IndexPageOffset: -1, DataPageOffset: sizes.DataPageoffset(),
		CompressedSize: written + sizes.TotalCompressedSize(), UncompressedSize: plain + sizes.TotalUncompressedSize(),
	}, true, false, metadata.EncodingStats{
		DictEncodingStats: map[parquet.Encoding]int32{parquet.Encodings.PlainDict: 1},
		DataEncodingStats: map[parquet.Encoding]int32{parquet.Encodings.PlainDict: int32(len(pages))},
	}, nil)
	if err != nil {
		return err
	}
	_, err = chunk.WriteTo(g.out)
	return err
}
