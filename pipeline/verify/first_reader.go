package verify

import (
	"errors"
	"sync"

	"github.com/leadetl/leadetl/sinks/typed"
)

// footer is the footer of a file as one implementation reads it.
type footer struct {
	columns   []typed.Element
	keyValues map[string]string
	rows      int64
	groups    []group
}

// group is a row group.
type group struct {
	rows   int64
	chunks []chunk // one for each leaf column
}

// chunk is a column chunk.
type chunk struct {
	path       string // "hashed_emails.list.element.email"
	physical   string // as of element
	values     int64  // and nulls
	offset     int64
	bytes      int64
	hasBounds  bool // the footer has a smallest or largest value
	statistics statistics
}

// footerOf is the footer of a file as the implementation of the Arrow project reads it, which also wrote it.
func footerOf(r *typed.File) (f footer, err error) {
	defer typed.Contain(&err)
	meta := r.Metadata()
	f = footer{columns: r.Root, rows: meta.NumRows, keyValues: map[string]string{}}
	for _, kv := range meta.FileMetaData.KeyValueMetadata {
		f.keyValues[kv.Key] = kv.GetValue()
	}
	for i := range r.Groups() {
		rg := meta.RowGroup(i)
		g := group{rows: rg.NumRows()}
		for j := range rg.NumColumns() {
			column, err := rg.ColumnChunk(j)
			if err != nil {
				return footer{}, err
			}
			stated, err := column.Statistics()
			if err != nil {
				return footer{}, err
			}
			of := statistics{nulls: -1}
			if stated != nil && stated.HasNullCount() {
				of.nulls = stated.NullCount()
			}
			hasBounds := stated != nil && stated.HasMinMax()
			if hasBounds && isNumber(column.Type().String()) {
				of.least, of.most = string(stated.EncodeMin()), string(stated.EncodeMax())
			}
			offset := column.DataPageOffset()
			if column.HasDictionaryPage() {
				offset = column.DictionaryPageOffset()
			}
			g.chunks = append(g.chunks, chunk{
				path: column.PathInSchema().String(), physical: column.Type().String(), values: column.NumValues(),
				offset: offset, bytes: column.TotalCompressedSize(), hasBounds: hasBounds, statistics: of,
			})
		}
		f.groups = append(f.groups, g)
	}
	return f, nil
}

// leaf holds a column chunk.
type leaf struct{ typed.Values }

// spareLeaves keeps used leaves, whose memory is used again, by the type of their values.
type spareLeaves struct {
	mu   sync.Mutex
	kept map[string][]*leaf
}

// get returns a used leaf of a type; nil without one.
func (s *spareLeaves) get(physical string) *leaf {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept[physical]
	n := len(kept)
	if n == 0 {
		return nil
	}
	s.kept[physical] = kept[:n-1]
	return kept[n-1]
}

func (s *spareLeaves) put(l *leaf) {
	clear(l.Texts) // they refer to pages
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[l.Physical] = append(s.kept[l.Physical], l)
}

// batchLevels bounds the values that are read at a time, because the counts of a
// footer may be wrong.
const batchLevels = 1 << 16

// readLeaf reads all of leaf column i of a row group, into the memory of a used leaf, or
// into new memory if that is nil.
func readLeaf(r *typed.File, rowGroup, i int, used *leaf) (*leaf, error) {
	l := used
	if l == nil {
		l = new(leaf)
	}
	l.Reset()
	chunk, err := r.Chunk(rowGroup, i)
	for err == nil {
		n := 0
		if n, err = chunk.Read(&l.Values, batchLevels); n == 0 {
			break
		}
	}
	if placed, ok := errors.AsType[*typed.Error](err); ok {
		err = placed.Err // a Failure names the place
	}
	return l, err
}
