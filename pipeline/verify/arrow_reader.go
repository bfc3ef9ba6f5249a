package verify

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/schema"

	"github.com/leadetl/leadetl/sinks"
)

// footer is the footer of a file as one implementation reads it.
type footer struct {
	columns   []element
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

// arrowReader reads a file with the implementation of the Arrow project, which also
// wrote it.
type arrowReader struct{ r *file.Reader }

func openArrow(f *sinks.OpenFile) (r arrowReader, err error) {
	defer contain(&err)
	// Without a buffered stream, Arrow reads every column chunk whole, into twice its size.
	props := parquet.NewReaderProperties(nil)
	props.BufferedStreamEnabled, props.BufferSize = true, 1<<16
	r.r, err = file.NewParquetReader(io.NewSectionReader(f, 0, f.Size), file.WithReadProps(props))
	return r, err
}

func (r arrowReader) footer() (f footer, err error) {
	defer contain(&err)
	meta := r.r.MetaData()
	f = footer{rows: meta.NumRows, keyValues: map[string]string{}}
	for i := range meta.Schema.Root().NumFields() {
		f.columns = append(f.columns, arrowElement(meta.Schema.Root().Field(i)))
	}
	for _, kv := range meta.FileMetaData.KeyValueMetadata {
		f.keyValues[kv.Key] = kv.GetValue()
	}
	for i := range r.r.NumRowGroups() {
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

func arrowElement(n schema.Node) element {
	e := element{name: n.Name(), repetition: strings.ToUpper(n.RepetitionType().String())}
	if converted := n.ConvertedType(); converted != schema.ConvertedTypes.None {
		e.converted = converted.String()
	}
	if group, ok := n.(*schema.GroupNode); ok {
		for i := range group.NumFields() {
			e.children = append(e.children, arrowElement(group.Field(i)))
		}
		return e
	}
	e.physical = n.(*schema.PrimitiveNode).PhysicalType().String()
	return e
}

// leaf holds a column chunk: the levels of all values and nulls, and the values.
type leaf struct {
	physical      string // as of element
	maxDefinition int16
	maxRepetition int16
	count         int // of values and nulls
	definition    []int16
	repetition    []int16
	texts         []parquet.ByteArray
	numbers       []int64 // of INT32 and INT64
	floats        []float64
	booleans      []bool
	numbers32     []int32 // a batch
	batch         int64   // values and nulls read at a time
}

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
	clear(l.texts) // they refer to pages
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[l.physical] = append(s.kept[l.physical], l)
}

// batchLevels bounds the values that are read at a time, because the counts of a
// footer may be wrong.
const batchLevels = 1 << 16

// leaf reads all of leaf column i of a row group, into the memory of a used leaf, or
// into new memory if that is nil.
func (r arrowReader) leaf(rowGroup, i int, used *leaf) (l *leaf, err error) {
	defer contain(&err)
	column, err := r.r.RowGroup(rowGroup).Column(i)
	if err != nil {
		return nil, err
	}
	d := column.Descriptor()
	l = &leaf{
		physical: column.Type().String(), maxDefinition: d.MaxDefinitionLevel(), maxRepetition: d.MaxRepetitionLevel(),
		batch: min(max(r.r.MetaData().RowGroups[rowGroup].NumRows, 1), batchLevels),
	}
	if used != nil {
		l.texts, l.numbers, l.numbers32 = used.texts[:0], used.numbers[:0], used.numbers32
		l.floats, l.booleans = used.floats[:0], used.booleans[:0]
		if l.maxDefinition > 0 {
			l.definition = used.definition[:0]
		}
		if l.maxRepetition > 0 {
			l.repetition = used.repetition[:0]
		}
	}
	most, err := r.values(rowGroup, i, l.maxRepetition)
	if err != nil {
		return nil, err
	}
	for column.HasNext() {
		n, err := l.read(column)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		if l.count += n; int64(l.count) > most { // a forged page may say that it has millions, for each byte
			return nil, fmt.Errorf("a page has more values than the footer says, %d", most)
		}
	}
	return l, column.Err()
}

// values is how many values and nulls a leaf column of a row group has at most.
func (r arrowReader) values(rowGroup, i int, maxRepetition int16) (int64, error) {
	group := r.r.MetaData().RowGroup(rowGroup)
	if maxRepetition == 0 {
		return group.NumRows(), nil
	}
	chunk, err := group.ColumnChunk(i)
	if err != nil {
		return 0, err
	}
	return chunk.NumValues(), nil
}

// read appends a batch, and returns how many values and nulls it has.
func (l *leaf) read(column file.ColumnChunkReader) (n int, err error) {
	var levels int64
	definition, repetition := l.levels(&l.definition, l.maxDefinition), l.levels(&l.repetition, l.maxRepetition)
	switch c := column.(type) {
	case *file.ByteArrayColumnChunkReader:
		levels, err = readValues(c, l.batch, &l.texts, definition, repetition)
	case *file.Int64ColumnChunkReader:
		levels, err = readValues(c, l.batch, &l.numbers, definition, repetition)
	case *file.Int32ColumnChunkReader:
		l.numbers32 = l.numbers32[:0]
		levels, err = readValues(c, l.batch, &l.numbers32, definition, repetition)
		for _, n := range l.numbers32 {
			l.numbers = append(l.numbers, int64(n))
		}
	case *file.Float64ColumnChunkReader:
		levels, err = readValues(c, l.batch, &l.floats, definition, repetition)
	case *file.BooleanColumnChunkReader:
		levels, err = readValues(c, l.batch, &l.booleans, definition, repetition)
	default:
		return 0, fmt.Errorf("values of type %s, which no dataset has", column.Type())
	}
	if definition != nil {
		l.definition = l.definition[:len(l.definition)+int(levels)]
	}
	if repetition != nil {
		l.repetition = l.repetition[:len(l.repetition)+int(levels)]
	}
	return int(levels), err
}

// readValues appends the values of a batch.
func readValues[T any](from interface {
	ReadBatch(batch int64, values []T, definition, repetition []int16) (levels int64, n int, err error)
}, batch int64, to *[]T, definition, repetition []int16,
) (levels int64, err error) {
	levels, n, err := from.ReadBatch(batch, room(to, batch), definition, repetition)
	*to = (*to)[:len(*to)+n]
	return levels, err
}

// levels makes room for a batch of levels; nil without levels.
func (l *leaf) levels(all *[]int16, most int16) []int16 {
	if most == 0 {
		return nil
	}
	return room(all, l.batch)
}

// room makes room for a batch at the end of all.
func room[T any](all *[]T, batch int64) []T {
	n := len(*all)
	*all = slices.Grow(*all, int(batch))
	return (*all)[n : n+int(batch)]
}

// contain turns a panic into an error. The readers are third-party code, and a
// damaged file may make them panic.
func contain(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the reader panicked: %.200v", p)
	}
}
