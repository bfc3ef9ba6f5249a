package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/xitongsys/parquet-go/compress"
	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/reader"

	"github.com/leadetl/leadetl/sinks/typed"
)

// pageOf is a page of a column chunk, while it is forged.
type pageOf struct {
	header *parquet.PageHeader
	data   []byte // unpacked
}

func (p pageOf) isData() bool { return p.header.DataPageHeader != nil }

// levels is where the definition levels of a flat nullable column end.
func (p pageOf) levels() int { return 4 + int(binary.LittleEndian.Uint32(p.data)) }

// forgePages returns a file with other pages in a column of its first row group, and with
// other metadata of their chunk. Pages get the sizes that they have.
func forgePages(t testing.TB, file []byte, path string, edit func([]pageOf) []pageOf, meta func(*parquet.ColumnMetaData)) []byte {
	t.Helper()
	opened := inMemoryFile(file)
	two, foot, err := openSecond(opened)
	if err != nil {
		t.Fatal(err)
	}
	p := &reader.ParquetReader{PFile: section{io.NewSectionReader(opened, 0, opened.Size)}}
	if err := p.ReadFooter(); err != nil {
		t.Fatal(err)
	}
	size, err := p.GetFooterSize()
	if err != nil {
		t.Fatal(err)
	}
	write := func(to *bytes.Buffer, what thrift.TStruct) {
		s := thrift.NewTSerializer()
		s.Protocol = thrift.NewTCompactProtocolFactoryConf(nil).GetProtocol(s.Transport)
		data, err := s.Write(t.Context(), what)
		if err != nil {
			t.Fatal(err)
		}
		to.Write(data)
	}
	out := bytes.NewBuffer(append([]byte(nil), file[:len(file)-8-int(size)]...))
	for i, chunk := range foot.groups[0].chunks {
		if chunk.path != path {
			continue
		}
		var pages []pageOf
		var packed []byte
		if err := two.pages(0, i, &packed, func(h *parquet.PageHeader, data []byte) error {
			pages = append(pages, pageOf{h, bytes.Clone(data)})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		m, begin := p.Footer.RowGroups[0].Columns[i].MetaData, int64(out.Len())
		m.DictionaryPageOffset, m.DataPageOffset = nil, 0
		for _, page := range edit(pages) {
			stored := compress.Compress(page.data, m.Codec)
			page.header.UncompressedPageSize, page.header.CompressedPageSize = int32(len(page.data)), int32(len(stored))
			if !page.isData() {
				m.DictionaryPageOffset = &begin
			} else if m.DataPageOffset == 0 {
				m.DataPageOffset = int64(out.Len())
			}
			write(out, page.header)
			out.Write(stored)
		}
		if m.DataPageOffset == 0 {
			m.DataPageOffset = begin
		}
		m.TotalCompressedSize = int64(out.Len()) - begin
		if meta != nil {
			meta(m)
		}
	}
	end := out.Len()
	write(out, p.Footer)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(out.Len()-end)))
	out.WriteString("PAR1")
	return out.Bytes()
}

// TestForgedPages: a page that is not what its header says is a failure that names its
// place, whichever reader meets it first.
func TestForgedPages(t *testing.T) {
	const rows = 60
	var all []map[string]any
	for i := range rows {
		r := row(i + 1)
		if i%2 == 1 {
			r["outcome"], r["reason"] = "no_match", "not_found"
		}
		all = append(all, r)
	}
	dir := write(t, all)
	good, err := os.ReadFile(filepath.Join(dir, "part-00000.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	data := func(change func(p *pageOf)) func([]pageOf) []pageOf {
		return func(pages []pageOf) []pageOf {
			for i := range pages {
				if pages[i].isData() {
					change(&pages[i])
				}
			}
			return pages
		}
	}
	dictionary := func(change func(p *pageOf)) func([]pageOf) []pageOf {
		return func(pages []pageOf) []pageOf {
			if pages[0].isData() {
				t.Fatal("no dictionary")
			}
			change(&pages[0])
			return pages
		}
	}
	levels := func(runs ...byte) func(p *pageOf) {
		return func(p *pageOf) {
			levels := append(binary.LittleEndian.AppendUint32(nil, uint32(len(runs))), runs...)
			p.data = append(levels, p.data[p.levels():]...)
		}
	}
	const run = rows << 1 // of all values
	for _, c := range []struct {
		name   string
		column string
		edit   func([]pageOf) []pageOf
		want   string // of Check
		second string // of the second reader alone
	}{
		{"an index outside the dictionary", "outcome", data(func(p *pageOf) { p.data = []byte{8, run, 200} }), "the Arrow reader cannot read it", "an index is not in the dictionary"},
		{"indices of 40 bits", "outcome", data(func(p *pageOf) { p.data = []byte{40, run, 0, 0, 0, 0, 0} }), "", "more than 32 bits"},
		{"too few indices", "outcome", data(func(p *pageOf) { p.data = []byte{1, run - 2, 0} }), "", "the indices of a page: it ends before the last value"},
		{"too many indices", "outcome", data(func(p *pageOf) { p.data = []byte{1, run + 2, 0} }), "the indices of a page: it has more values", "it has more values than its header says"},
		{"a run of no index", "outcome", data(func(p *pageOf) { p.data = append([]byte{1, 0, 0}, p.data[1:]...) }), "", "it ends before the last value"},
		{"bytes behind indices", "outcome", data(func(p *pageOf) { p.data = append(p.data, 0) }), "the indices of a page: there are bytes behind", "there are bytes behind the last value"},
		{"no indices", "outcome", data(func(p *pageOf) { p.data = nil }), "", "it ends before the last value"},
		{"bytes behind a dictionary", "outcome", dictionary(func(p *pageOf) { p.data = append(p.data, 0) }), "the dictionary: there are bytes behind", "the dictionary: there are bytes behind the last value"},
		{"a text that ends behind the dictionary", "outcome", dictionary(func(p *pageOf) { p.data[3] = 0x7f }), "", "the dictionary: it ends before the last value"},
		{"a value less in the dictionary", "outcome", dictionary(func(p *pageOf) { p.header.DictionaryPageHeader.NumValues-- }), "", "the dictionary: there are bytes behind"},
		{"two dictionaries", "outcome", func(p []pageOf) []pageOf { return append(p[:1:1], p...) }, "the Arrow reader cannot read it", "two dictionaries"},
		{"no dictionary", "outcome", func(p []pageOf) []pageOf { return p[1:] }, "the Arrow reader cannot read it", "an index is not in the dictionary"},
		{"bytes behind texts", "key", data(func(p *pageOf) { p.data = append(p.data, 0) }), "there are bytes behind the last value", "there are bytes behind the last value"},
		{"a text that is cut", "key", data(func(p *pageOf) { p.data = p.data[:len(p.data)-3] }), "", "it ends before the last value"},
		{"bytes behind numbers", "source_row", data(func(p *pageOf) { p.data = append(p.data, 0) }), "there are bytes behind the last value", "there are bytes behind the last value"},
		{"a number that is cut", "source_row", data(func(p *pageOf) { p.data = p.data[:len(p.data)-3] }), "", "it ends before the last value"},
		{"booleans that are cut", "phone_valid", data(func(p *pageOf) { p.data = p.data[:len(p.data)-1] }), "", "it ends before the last value"},
		{"bytes behind booleans", "phone_valid", data(func(p *pageOf) { p.data = append(p.data, 0) }), "there are bytes behind the last value", "there are bytes behind the last value"},
		{"too few levels", "key", data(levels(run-2, 1)), "", "the levels of a page: it ends before the last value"},
		{"too many levels", "key", data(levels(run+2, 1)), "the levels of a page: it has more values", "it has more values than its header says"},
		{"bytes behind levels", "key", data(levels(run, 1, 0)), "the levels of a page: there are bytes behind", "there are bytes behind the last value"},
		{"a null less than values", "key", data(levels(run-2, 1, 2, 0)), "", "on what is null"},
		{"a level that does not exist", "key", data(levels(run, 2)), "", "on what is null"},
		{"levels that end behind the page", "key", data(func(p *pageOf) { p.data[3] = 1 }), "the Arrow reader cannot read it", "it ends before the last value"},
		{"a list that begins before its chunk", "words.list.element", data(func(p *pageOf) { p.data[5] |= 1 }), "", "where a list ends"},
		{"values in another encoding", "key", data(func(p *pageOf) { p.header.DataPageHeader.Encoding = parquet.Encoding_DELTA_BYTE_ARRAY }), "", "encoded as DELTA_BYTE_ARRAY, which no dataset has"},
		{"levels in another encoding", "key", data(func(p *pageOf) { p.header.DataPageHeader.DefinitionLevelEncoding = parquet.Encoding_BIT_PACKED }), "", "levels in an encoding that no dataset has"},
		{"a value less in the header", "key", data(func(p *pageOf) { p.header.DataPageHeader.NumValues-- }), "its pages have another number of values", "the levels of a page: it has more values"},
		{"a value more in the header", "key", data(func(p *pageOf) { p.header.DataPageHeader.NumValues++ }), "a page header has impossible sizes", "a page header has impossible sizes"},
		{"a page again", "key", func(p []pageOf) []pageOf { return append(p, p...) }, "its pages have another number of values", "more values than Arrow's"},
		{"no page", "key", func([]pageOf) []pageOf { return nil }, "its pages have another number of values", "the second reader finds 0 values"},
		{"a page of another type", "key", data(func(p *pageOf) { p.header.Type = parquet.PageType_INDEX_PAGE }), "a page header has impossible sizes", "a page header has impossible sizes"},
		{"the same", "key", func(p []pageOf) []pageOf { return p }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			part := forgePages(t, good, c.column, c.edit, nil)
			r, err := Check(t.Context(), forged(t, dir, part), testRules(false))
			if err != nil {
				t.Fatal(err)
			}
			found := fmt.Sprint(r.Failures)
			top, _, _ := strings.Cut(c.column, ".")
			if c.second == "" != r.Whole() || !strings.Contains(found, c.want) || !r.Whole() && !strings.Contains(found, "part-00000.parquet, row group 1, column "+top) {
				t.Errorf("found %s, want %q", found, c.want)
			}
			if found := compareWith(t, good, part, c.column); !strings.Contains(found, c.second) || (c.second == "") != (found == "") || strings.Contains(found, "panic") {
				t.Errorf("the second reader says %q, want %q", found, c.second)
			}
		})
	}
}

// TestForgedStatistics: what a footer says of numbers is compared with them.
func TestForgedStatistics(t *testing.T) {
	dir := write(t, []map[string]any{row(1), row(2), row(3)})
	good, err := os.ReadFile(filepath.Join(dir, "part-00000.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	eight := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	four := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	nulls := int64(1)
	const outside = "a value is outside the bounds in the footer"
	for _, c := range []struct {
		name, column string
		edit         func(*parquet.Statistics)
		want         string
	}{
		{"the same", "source_row", func(*parquet.Statistics) {}, ""},
		{"wider", "source_row", func(s *parquet.Statistics) { s.MinValue, s.MaxValue = eight(0), eight(9) }, ""},
		{"a smallest value that is too large", "source_row", func(s *parquet.Statistics) { s.MinValue, s.Min = eight(2), eight(2) }, outside},
		{"a largest value that is too small", "source_row", func(s *parquet.Statistics) { s.MaxValue, s.Max = eight(2), eight(2) }, outside},
		{"of 32 bits", "credits", func(s *parquet.Statistics) { s.MinValue, s.MaxValue = four(1), four(1) }, outside},
		{"of a fraction", "confidence", func(s *parquet.Statistics) { s.MaxValue = eight(0) }, outside},
		{"another number of nulls", "credits", func(s *parquet.Statistics) { s.NullCount = &nulls }, "another number of nulls than the footer says"},
		{"short ones", "source_row", func(s *parquet.Statistics) { s.MinValue, s.MaxValue = []byte{1}, []byte{1} }, "part-00000.parquet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			part := forgePages(t, good, c.column, func(p []pageOf) []pageOf { return p }, func(m *parquet.ColumnMetaData) { c.edit(m.Statistics) })
			r, err := Check(t.Context(), forged(t, dir, part), testRules(false))
			if err != nil {
				t.Fatal(err)
			}
			if found := fmt.Sprint(r.Failures); (c.want == "") != r.Whole() || !strings.Contains(found, c.want) {
				t.Errorf("found %s, want %q", found, c.want)
			}
		})
	}
}

// compareWith compares a column of a forged file with what Arrow reads of the good one.
func compareWith(t *testing.T, good, forged []byte, path string) string {
	t.Helper()
	one, err := typed.Open("", bytes.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	two, foot, err := openSecond(inMemoryFile(forged))
	if err != nil {
		t.Fatal(err)
	}
	for i, chunk := range foot.groups[0].chunks {
		if chunk.path == path {
			l, err := readLeaf(one, 0, i, nil)
			if err != nil {
				t.Fatal(err)
			}
			problem, _ := problemOf(compare(l, two, 0, i))
			return problem
		}
	}
	t.Fatal("no such column")
	return ""
}
