package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/xitongsys/parquet-go/compress"
	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/schema"
	"github.com/xitongsys/parquet-go/source"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/typed"
)

// secondReader reads a file with xitongsys/parquet-go, which shares no code with the
// first implementation. It reads the footer, page headers and dictionaries, and unpacks
// pages. Levels, indices and plain values are compared as bytes by comparison, because it
// makes an object of each; decodedComparison lets it do so for a sample.
type secondReader struct {
	file   *sinks.OpenFile
	meta   *parquet.FileMetaData
	schema *schema.SchemaHandler
}

// openSecond also returns the footer, because the implementation renames the columns.
func openSecond(f *sinks.OpenFile) (r secondReader, foot footer, err error) {
	defer typed.Contain(&err)
	if f.Size < 12 {
		return secondReader{}, footer{}, errors.New("too short")
	}
	for _, at := range []int64{0, f.Size - 4} { // this implementation does not check it
		var magic [4]byte
		if _, err := f.ReadAt(magic[:], at); err != nil {
			return secondReader{}, footer{}, err
		}
		if !bytes.Equal(magic[:], []byte("PAR1")) {
			return secondReader{}, footer{}, fmt.Errorf("no PAR1 at %d", at)
		}
	}
	p := &reader.ParquetReader{PFile: section{io.NewSectionReader(f, 0, f.Size)}}
	size, err := p.GetFooterSize()
	if err == nil && int64(size) > f.Size-12 {
		err = fmt.Errorf("a footer of %d bytes", size)
	}
	if err == nil {
		err = p.ReadFooter()
	}
	if err != nil {
		return secondReader{}, footer{}, err
	}
	foot, err = secondFooter(p.Footer)
	if err != nil {
		return secondReader{}, footer{}, err
	}
	p.SchemaHandler = schema.NewSchemaHandlerFromSchemaList(p.Footer.GetSchema())
	p.RenameSchema()
	return secondReader{f, p.Footer, p.SchemaHandler}, foot, nil
}

func secondFooter(meta *parquet.FileMetaData) (footer, error) {
	f := footer{rows: meta.NumRows, keyValues: map[string]string{}}
	root, _, err := secondElement(meta.Schema, 0)
	if err != nil {
		return footer{}, err
	}
	f.columns = root.Children
	for _, kv := range meta.KeyValueMetadata {
		f.keyValues[kv.Key] = kv.GetValue()
	}
	for _, rg := range meta.RowGroups {
		g := group{rows: rg.NumRows}
		for _, column := range rg.Columns {
			m := column.MetaData
			s := m.Statistics
			g.chunks = append(g.chunks, chunk{
				path: strings.Join(m.PathInSchema, "."), physical: m.Type.String(), values: m.NumValues, offset: firstPage(m), bytes: m.TotalCompressedSize,
				hasBounds: s != nil && (s.Min != nil || s.Max != nil || s.MinValue != nil || s.MaxValue != nil), statistics: secondStatistics(m),
			})
		}
		f.groups = append(f.groups, g)
	}
	return f, nil
}

// firstPage is where the pages of a column chunk begin.
func firstPage(m *parquet.ColumnMetaData) int64 {
	if m.DictionaryPageOffset != nil {
		return *m.DictionaryPageOffset
	}
	return m.DataPageOffset
}

func secondStatistics(m *parquet.ColumnMetaData) statistics {
	s := statistics{nulls: -1}
	if m.Statistics == nil {
		return s
	}
	if m.Statistics.NullCount != nil {
		s.nulls = *m.Statistics.NullCount
	}
	if least, most := m.Statistics.MinValue, m.Statistics.MaxValue; isNumber(m.Type.String()) {
		s.least, s.most = string(least), string(most)
	}
	return s
}

// secondElement returns the element at an index of the flat schema of a file, where
// groups come before their members, and the index after it.
func secondElement(all []*parquet.SchemaElement, at int) (typed.Element, int, error) {
	if at >= len(all) {
		return typed.Element{}, 0, errors.New("the schema ends inside a group")
	}
	s := all[at]
	e := typed.Element{Name: s.Name, Repetition: s.GetRepetitionType().String()}
	if s.IsSetConvertedType() {
		e.Converted = s.GetConvertedType().String()
	}
	if s.IsSetType() {
		e.Physical = s.GetType().String()
	}
	at++
	for range s.GetNumChildren() {
		child, behind, err := secondElement(all, at)
		if err != nil {
			return typed.Element{}, 0, err
		}
		e.Children, at = append(e.Children, child), behind
	}
	return e, at, nil
}

// pages calls each for every page of a column chunk, with its bytes unpacked, which are
// valid until it returns. packed is memory for the bytes as they are in the file.
func (r secondReader) pages(rowGroup, i int, packed *[]byte, each func(h *parquet.PageHeader, data []byte) error) error {
	codec := r.meta.RowGroups[rowGroup].Columns[i].MetaData.Codec
	return r.headers(rowGroup, i, func(h *parquet.PageHeader, at int64) error {
		*packed = resized(*packed, int(h.CompressedPageSize))
		if _, err := r.file.ReadAt(*packed, at); err != nil {
			return err
		}
		data, err := compress.Uncompress(*packed, codec)
		if err != nil {
			return err
		}
		return each(h, data)
	})
}

// checkPages checks the page headers of a chunk. It refuses sizes that would make a
// reader allocate more memory than the values need, because both implementations trust
// the headers.
func (r secondReader) checkPages(rowGroup, i int) error {
	left := r.meta.RowGroups[rowGroup].Columns[i].MetaData.NumValues
	err := r.headers(rowGroup, i, func(h *parquet.PageHeader, _ int64) error {
		if h.DataPageHeader != nil {
			left -= int64(h.DataPageHeader.NumValues)
		}
		return nil
	})
	if err == nil && left != 0 {
		err = errors.New("its pages have another number of values than the footer says")
	}
	return err
}

// headers calls each for every page of a column chunk, with its header, which it checks,
// and where its bytes begin.
func (r secondReader) headers(rowGroup, i int, each func(h *parquet.PageHeader, at int64) error) (err error) {
	defer typed.Contain(&err)
	meta := r.meta.RowGroups[rowGroup].Columns[i].MetaData
	offset, size := firstPage(meta), meta.TotalCompressedSize
	if offset < 4 || size < 0 || offset > r.file.Size || size > r.file.Size-offset {
		return errors.New("its pages are outside the file")
	}
	end := offset + size
	room := make([]byte, min(end-offset, maxHeader))
	for at := offset; at < end; {
		head := room[:min(end-at, maxHeader)]
		if _, err := r.file.ReadAt(head, at); err != nil {
			return err
		}
		in := &thrift.TMemoryBuffer{Buffer: bytes.NewBuffer(head)}
		h := parquet.NewPageHeader()
		if err := h.Read(context.Background(), thrift.NewTCompactProtocolConf(in, nil)); err != nil {
			return fmt.Errorf("a page header cannot be read: %w", err)
		}
		at += int64(len(head) - in.Len())
		if !isPossible(h, meta, end-at) {
			return errors.New("a page header has impossible sizes")
		}
		if err := each(h, at); err != nil {
			return err
		}
		at += int64(h.CompressedPageSize)
	}
	return nil
}

// isPossible reports whether the sizes in a page header fit its chunk, of which so many
// bytes are left.
func isPossible(h *parquet.PageHeader, meta *parquet.ColumnMetaData, left int64) bool {
	if size := int64(h.CompressedPageSize); size < 0 || size > left || h.UncompressedPageSize < 0 || int64(h.UncompressedPageSize) > unpacked(meta.Codec, size) {
		return false
	}
	switch {
	case h.Type == parquet.PageType_DATA_PAGE && h.DataPageHeader != nil && h.DictionaryPageHeader == nil:
		return h.DataPageHeader.NumValues >= 0 && int64(h.DataPageHeader.NumValues) <= meta.NumValues
	case h.Type == parquet.PageType_DICTIONARY_PAGE && h.DictionaryPageHeader != nil && h.DataPageHeader == nil:
		return h.DictionaryPageHeader.NumValues >= 0 && h.DictionaryPageHeader.NumValues <= h.UncompressedPageSize/4
	}
	return false
}

// unpacked bounds the size of unpacked bytes. Snappy copies at most 64 bytes with three.
func unpacked(codec parquet.CompressionCodec, packed int64) int64 {
	switch codec {
	case parquet.CompressionCodec_UNCOMPRESSED:
		return packed
	case parquet.CompressionCodec_SNAPPY:
		return min(22*packed+64, maxPage)
	}
	return maxPage
}

const (
	maxHeader = 1 << 12
	maxPage   = 1 << 30 // a page ends soon after 256 kB, and a value is no larger than a line
)

// section is a part of a file in the form that the implementation needs.
type section struct{ *io.SectionReader }

func (section) Write([]byte) (int, error)                 { return 0, errors.ErrUnsupported }
func (section) Close() error                              { return nil }
func (section) Create(string) (source.ParquetFile, error) { return nil, errors.ErrUnsupported }
func (section) Open(string) (source.ParquetFile, error)   { return nil, errors.ErrUnsupported }
