package columns

import (
	"slices"
	"sync"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Columns of answers become Arrow arrays over the same memory.

// textTables are the tables of coded texts as Arrow arrays. All parts of a run share them,
// because the encoder tells tables apart by their type object. It is safe from many
// goroutines.
type textTables struct {
	mu        sync.Mutex
	all       map[*resolution.TextTable]textTable
	described map[*resolution.TextTable]*detailsTable
}

// textTable is the texts of a table, and null behind them.
type textTable struct {
	kind   *arrow.DictionaryType
	values arrow.Array
}

func (t *textTables) get(of *resolution.TextTable) textTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.all[of]; ok {
		return known
	}
	n := of.Len()
	valid := make([]byte, bitutil.BytesForBits(int64(n+1)))
	bitutil.SetBitsTo(valid, 0, int64(n), true)
	texts := resolution.Texts{Data: of.Data, Offsets: append(slices.Clone(of.Offsets), of.Offsets[n])}
	made := textTable{
		kind:   &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
		values: nullableStrings(&texts, memory.NewBufferBytes(valid), 1),
	}
	if t.all == nil {
		t.all = map[*resolution.TextTable]textTable{}
	}
	t.all[of] = made
	return made
}

// column is a column of n texts; an empty one is null.
func (t *textTables) column(c *resolution.CodedTexts, n int) arrow.Array {
	c.Pad(n)
	if c.Table == nil {
		return textArray(&c.Texts)
	}
	table := t.get(c.Table)
	return codedArray(table.kind, c.Codes, table.values)
}

func codedArray(kind *arrow.DictionaryType, codes []int32, values arrow.Array) arrow.Array {
	indices := int32Array(codes)
	defer indices.Release()
	return array.NewDictionaryArray(kind, indices, values)
}

// textArray is a column of texts; an empty one is null.
func textArray(t *resolution.Texts) arrow.Array {
	return stringArray(t, func(i int) bool { return t.Offsets[i] < t.Offsets[i+1] })
}

// listArray is lists over the memory of their ends; an empty one is null.
func listArray(kind *arrow.ListType, l *resolution.TextLists, of arrow.ArrayData) arrow.Array {
	if len(l.Ends) == 0 {
		l.Reset()
	}
	valid, nulls := bitmap(l.Len(), func(i int) bool { return l.Ends[i] < l.Ends[i+1] })
	list := array.NewData(kind, l.Len(), []*memory.Buffer{valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(l.Ends))}, []arrow.ArrayData{of}, nulls, 0)
	defer list.Release()
	return array.NewListData(list)
}

// pairLists are lists of texts and their types over the memory of lists of texts.
type pairLists struct {
	kind *arrow.ListType
	none []byte // offsets and bitmap of types that are null
}

// array is n lists of pairs.
func (p *pairLists) array(l *resolution.TypedTexts, n int) arrow.Array {
	l.Pad(n)
	types := p.types(l)
	defer types.Release()
	return pairArray(p.kind, &l.TextLists, types)
}

// types are the types of all texts.
func (p *pairLists) types(l *resolution.TypedTexts) arrow.Array {
	n := l.Texts.Len()
	if l.Types.Len() > 0 {
		l.Types.Pad(n)
		l.Types.Unfold()
		return textArray(&l.Types.Texts)
	}
	if size := 4 * (n + 1); len(p.none) < size {
		p.none = make([]byte, size)
	}
	data := array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{memory.NewBufferBytes(p.none), memory.NewBufferBytes(p.none[:4*(n+1)]), nil}, nil, n, 0)
	defer data.Release()
	return array.NewStringData(data)
}

func pairArray(kind *arrow.ListType, l *resolution.TextLists, types arrow.Array) arrow.Array {
	texts := stringArray(&l.Texts, nil)
	pairs := array.NewData(kind.Elem(), l.Texts.Len(), []*memory.Buffer{nil}, []arrow.ArrayData{texts.Data(), types.Data()}, 0, 0)
	defer func() { texts.Release(); pairs.Release() }()
	return listArray(kind, l, pairs)
}

// detailsTable is the columns that details of phones become, by the code of these, and null behind
// them. Regions and types are not arrays of arrays that share codes: in an encoder one table of codes
// is shared, that of companies.
type detailsTable struct {
	regions, types           *valueTable
	regionValues, typeValues arrow.Array
	valid                    []bool
}

func (t *textTables) details(of *resolution.TextTable) *detailsTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.described[of]; ok {
		return known
	}
	made := &detailsTable{regions: newValueTable(arrow.BinaryTypes.String), types: newValueTable(arrow.BinaryTypes.String)}
	for code := range of.Len() {
		d := phone.ParseDetails(string(of.At(code)))
		made.regions.addText(d.Region)
		made.types.addText(d.Type)
		made.valid = append(made.valid, d.Valid)
	}
	made.regions.addText("")
	made.types.addText("")
	made.regionValues, made.typeValues = made.regions.values(), made.types.values()
	if t.described == nil {
		t.described = map[*resolution.TextTable]*detailsTable{}
	}
	t.described[of] = made
	return made
}

// hashedEmailsFiller builds hashed_emails. The types are codes, if all are known ones.
type hashedEmailsFiller struct{}

var (
	hashTypes     = stringArray(&resolution.HashTypes.Texts, nil)
	hashTypeKind  = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	codedHashType = arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.StructOf(
		arrow.Field{Name: "email", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "type", Type: hashTypeKind, Nullable: true},
	), Nullable: true})
)

func (f hashedEmailsFiller) fill(b *Batch, to *blocks) {
	to.add(func() arrow.Array { return f.array(b) })
}

func (hashedEmailsFiller) array(b *Batch) arrow.Array {
	l := &b.Answers.Hashes
	coded := l.Types.Table == resolution.HashTypes && l.Types.Len() == l.Texts.Len()
	if !coded || slices.Contains(l.Types.Codes, int32(resolution.HashTypes.Len())) {
		lists := pairLists{kind: schema.Emails}
		return lists.array(l, b.Len())
	}
	l.Pad(b.Len())
	types := codedArray(hashTypeKind, l.Types.Codes, hashTypes)
	defer types.Release()
	return pairArray(codedHashType, &l.TextLists, types)
}
