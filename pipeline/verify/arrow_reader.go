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

// footer is what one implementation makes of a file's footer.
type footer struct {
	columns   []element
	keyValues map[string]string
	rows      int64
	groups    []group
}

// group is a row group.
type group struct {
	rows   int64
	chunks []chunk // a leaf column each
}

// chunk is a column chunk.
type chunk struct {
	path       string // "hashed_emails.list.element.email"
	values     int64  // nulls included
	offset     int64
	bytes      int64
	statistics bool // a smallest or largest value is in the footer
}

// arrowReader reads a file with the Arrow project's implementation, which has also
// written it.
type arrowReader struct{ r *file.Reader }

func openArrow(f *sinks.OpenFile) (r arrowReader, err error) {
	defer contain(&err)
	r.r, err = file.NewParquetReader(io.NewSectionReader(f, 0, f.Size))
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
			statistics, err := column.Statistics()
			if err != nil {
				return footer{}, err
			}
			offset := column.DataPageOffset()
			if column.HasDictionaryPage() {
				offset = column.DictionaryPageOffset()
			}
			g.chunks = append(g.chunks, chunk{
				path: column.PathInSchema().String(), values: column.NumValues(),
				offset: offset, bytes: column.TotalCompressedSize(), statistics: statistics != nil && statistics.HasMinMax(),
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

// leaf is the values of a column chunk: for every value or null its levels,
// and the values that are there.
type leaf struct {
	maxDefinition int16
	maxRepetition int16
	count         int // nulls included
	definition    []int16
	repetition    []int16
	texts         []parquet.ByteArray
	numbers       []int64 // of INT32 and INT64
	floats        []float64
	booleans      []bool
	numbers32     []int32 // room for a batch
	batch         int64   // values and nulls read at a time
}

// spareLeaves keeps leaves that nobody looks at any more, for their memory.
type spareLeaves struct {
	mu   sync.Mutex
	most int
	list []*leaf
}

// get is a leaf to be used again; nil when there is none.
func (s *spareLeaves) get() *leaf {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list)
	if n == 0 {
		return nil
	}
	l := s.list[n-1]
	s.list = s.list[:n-1]
	return l
}

func (s *spareLeaves) put(l *leaf) {
	clear(l.texts) // they hold on to pages
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) < s.most {
		s.list = append(s.list, l)
	}
}

// batchLevels is how many values are read at a time, at the most: what a footer
// claims is not believed before it is read.
const batchLevels = 1 << 16

// leaf reads the leaf column i of a row group whole, into the memory of used, a
// leaf that nobody looks at any more; nil for new memory.
func (r arrowReader) leaf(rowGroup, i int, used *leaf) (l *leaf, err error) {
	defer contain(&err)
	column, err := r.r.RowGroup(rowGroup).Column(i)
	if err != nil {
		return nil, err
	}
	d := column.Descriptor()
	l = &leaf{
		maxDefinition: d.MaxDefinitionLevel(), maxRepetition: d.MaxRepetitionLevel(),
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
	for {
		n, err := l.read(column)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return l, column.Err()
		}
		l.count += n
	}
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

// levels is room for a batch of levels, nil where there are none.
func (l *leaf) levels(all *[]int16, most int16) []int16 {
	if most == 0 {
		return nil
	}
	return room(all, l.batch)
}

// room is room for a batch behind what is there.
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
