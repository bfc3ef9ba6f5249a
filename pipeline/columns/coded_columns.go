package columns

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/internal/codes"
)

// valueTable is the distinct values of one column that the codes of rows point
// into. It only grows: a code means the same value in every dictionary array that
// has the table's type object, by which the encoder tells tables apart.
type valueTable struct {
	kind     *arrow.DictionaryType
	texts    textViews // of a column of text
	byText   codes.Table
	numbers  []byte // of any other
	byNumber map[maybe]int32
	valid    []byte // bitmap, with ones behind the last value
	n        int
	of       []int32 // the code of each company
}

// maybe is a number or null.
type maybe struct {
	n     int64
	known bool
}

func newValueTable(values arrow.DataType) *valueTable {
	if values.ID() == arrow.STRING {
		values = arrow.BinaryTypes.StringView
	}
	return &valueTable{byNumber: map[maybe]int32{}, kind: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: values}}
}

// addText adds the text of a phone.
func (t *valueTable) addText(v string) { t.of = append(t.of, t.codeOf(v)) }

// codeOf returns the code of a text. It adds a text that is new.
func (t *valueTable) codeOf(v string) int32 {
	hash := codes.HashOf(v)
	if code, found := t.byText.Find(hash, func(code uint32) bool { return string(t.texts.at(int(code))) == v }); found {
		return int32(code)
	}
	t.texts.add(v)
	t.mark(v != "")
	return int32(t.byText.Add(hash))
}

// codeOfNumber returns the code of a number, or of null. It adds one that is new.
func codeOfNumber[T int32 | int64](t *valueTable, v T, known bool) int32 {
	key := maybe{int64(v), known}
	code, seen := t.byNumber[key]
	if !seen {
		code = int32(t.n)
		t.byNumber[key] = code
		t.numbers = append(t.numbers, unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))...)
		t.mark(known)
	}
	return code
}

// mark adds a value. Only null, which there is once, changes memory that earlier arrays have.
func (t *valueTable) mark(valid bool) {
	if t.n%8 == 0 {
		t.valid = append(t.valid, 0xff)
	}
	if !valid {
		t.valid = slices.Clone(t.valid)
		bitutil.ClearBit(t.valid, t.n)
	}
	t.n++
}

// values are the values so far. They do not change when others are added.
func (t *valueTable) values() arrow.Array {
	if t.kind.ValueType.ID() == arrow.STRING_VIEW {
		return t.texts.array(t.valid)
	}
	data := array.NewData(t.kind.ValueType, t.n, []*memory.Buffer{memory.NewBufferBytes(t.valid), memory.NewBufferBytes(t.numbers)}, nil, array.UnknownNullCount, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// snapshot is the column of all companies so far, by the code of each: a dictionary array of
// the values. It does not change when others are added.
func (t *valueTable) snapshot() arrow.Array {
	values := t.values()
	defer values.Release()
	codes := int32Array(t.of)
	defer codes.Release()
	column := array.NewDictionaryArray(t.kind, codes, values)
	column.Dictionary() // Arrow keeps it when it is asked for first: encoders of other parts have the array too
	return column
}

// int32Array is an array over the memory of numbers.
func int32Array(n []int32) arrow.Array {
	data := array.NewData(arrow.PrimitiveTypes.Int32, len(n), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(n))}, nil, 0, 0)
	defer data.Release()
	return array.NewInt32Data(data)
}

// int64Array is an array over the memory of numbers.
func int64Array(n []int64) arrow.Array {
	data := array.NewData(arrow.PrimitiveTypes.Int64, len(n), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(n))}, nil, 0, 0)
	defer data.Release()
	return array.NewInt64Data(data)
}

// wordColumn builds a column of text in which few words stand for many rows, by codes of a
// table; "" means null.
type wordColumn struct {
	table  *valueTable
	codes  []int32
	chosen []int32 // of the words to choose from
	recent [16]recentWord
	values arrow.Array // those of the table; nil when it has more
}

// recentWord is a word with its code.
type recentWord struct {
	word  string
	code  int32
	known bool
}

// maxWords ends a table: services may give any reason.
const maxWords = 1 << 10

func newWordColumn() *wordColumn {
	return &wordColumn{table: newValueTable(arrow.BinaryTypes.String)}
}

// build builds a column of words. It uses the memory of the codes again.
func (w *wordColumn) build(words []string) arrow.Array {
	return w.from(len(words), func(i int) string { return words[i] })
}

// from is build of n words.
func (w *wordColumn) from(n int, word func(i int) string) arrow.Array {
	w.start(n)
	for i := range n {
		w.codes[i] = w.code(word(i))
	}
	return w.finish()
}

// choose builds a column of n rows out of a few words. It uses the memory of the codes again.
func (w *wordColumn) choose(words []string, n int, choice func(i int) int) arrow.Array {
	w.start(n)
	w.chosen = w.chosen[:0]
	for _, word := range words {
		w.chosen = append(w.chosen, w.code(word))
	}
	for i := range n {
		w.codes[i] = w.chosen[choice(i)]
	}
	return w.finish()
}

func (w *wordColumn) start(n int) {
	if w.table.n > maxWords {
		w.table, w.values, w.recent = newValueTable(arrow.BinaryTypes.String), nil, [16]recentWord{}
	}
	w.codes = slices.Grow(w.codes[:0], n)[:n]
}

func (w *wordColumn) finish() arrow.Array {
	if w.values == nil {
		w.values = w.table.values()
	}
	codes := int32Array(w.codes)
	defer codes.Release()
	return array.NewDictionaryArray(w.table.kind, codes, w.values)
}

// code returns the code of a word.
func (w *wordColumn) code(word string) int32 {
	place := len(word)
	if place > 0 {
		place += 5 * int(word[place-1])
	}
	r := &w.recent[place%len(w.recent)]
	if r.word == word && r.known {
		return r.code
	}
	n := w.table.n
	code := w.table.codeOf(word)
	if w.table.n > n {
		w.values = nil
	}
	*r = recentWord{strings.Clone(word), code, true}
	return code
}
