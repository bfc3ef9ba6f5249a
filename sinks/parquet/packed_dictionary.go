package parquet

import (
	"bytes"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/metadata"
)

// packedDictionary is the page of a dictionary as the file has it. Arrow's page writer compresses
// a dictionary when it writes it, one column after another: that was a quarter of the processor
// time of ip_to_company, on one core. A column packs it while others pack theirs.
type packedDictionary struct {
	newPages func(to *tellWriter) (file.PageWriter, error)
	page     bytes.Buffer
	sizes    pageSizes // of the page
	err      error
}

// pageSizes is what a page writer of Arrow has written.
type pageSizes interface {
	NumValues() int64
	DataPageoffset() int64
	TotalCompressedSize() int64
	TotalUncompressedSize() int64
}

// pack makes the page.
func (p *packedDictionary) pack(d *dictionary) {
	var out file.PageWriter
	if out, p.err = p.newPages(&tellWriter{w: &p.page}); p.err == nil {
		page := file.NewDictionaryPage(memory.NewBufferBytes(d.data), int32(d.len()), parquet.Encodings.PlainDict)
		defer page.Release()
		_, p.err = out.WriteDictionaryPage(page)
		p.sizes = out.(pageSizes)
	}
}

// flush writes the page, and then pages of numbers, as a chunk.
func (p *packedDictionary) flush(g *rowGroup, chunk *metadata.ColumnChunkMetaDataBuilder, out file.PageWriter, pool *PagePool, pages []*page) error {
	start := g.out.Tell()
	if p.err == nil {
		_, p.err = p.page.WriteTo(g.out)
	}
	if p.err != nil {
		return p.err
	}
	p.page = bytes.Buffer{}
	if err := g.writePages(out, pool, pages, parquet.Encodings.PlainDict); err != nil {
		return err
	}
	sizes := out.(pageSizes)
	err := chunk.Finish(metadata.ChunkMetaInfo{
		NumValues: sizes.NumValues(), DictPageOffset: start, IndexPageOffset: -1, DataPageOffset: sizes.DataPageoffset(),
		CompressedSize:   p.sizes.TotalCompressedSize() + sizes.TotalCompressedSize(),
		UncompressedSize: p.sizes.TotalUncompressedSize() + sizes.TotalUncompressedSize(),
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
