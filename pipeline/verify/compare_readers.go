package verify

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/xitongsys/parquet-go/encoding"
	"github.com/xitongsys/parquet-go/parquet"
)

// comparison compares the pages of a column chunk, as the second implementation unpacks
// them, with the values that the first one read, in order. It makes no value of its own,
// but for dictionaries.
type comparison struct {
	leaf  *leaf
	kind  parquet.Type
	at    int // values and nulls compared
	there int // values compared

	hasDictionary bool
	texts         []knownText // of the dictionary
	numbers       []int64     // of the dictionary

	packed  []byte   // a page as it is in the file
	levels  []int16  // of a page
	indices []uint32 // of a page
	bits    []int64  // of the fractions of a page
}

// comparisons keeps used ones, for their memory.
var comparisons = sync.Pool{New: func() any { return new(comparison) }}

// knownText is a text of the dictionary. After it was compared once, a text that begins
// at the same byte of Arrow's memory and is as long is the same text.
type knownText struct {
	text  string
	first *byte // of Arrow's text; nil before
}

// differError ends a comparison that found a difference.
type differError struct {
	row     int64 // of the row group, from 1
	problem string
}

func (e *differError) Error() string { return e.problem }

// compare reads a column chunk with the second implementation. A difference is a
// *differError.
func compare(l *leaf, r secondReader, rowGroup, i int) error {
	c := comparisons.Get().(*comparison)
	defer c.release()
	c.leaf, c.kind = l, r.meta.RowGroups[rowGroup].Columns[i].MetaData.Type
	if err := r.pages(rowGroup, i, &c.packed, c.page); err != nil {
		return err
	}
	if c.at != l.Count {
		return &differError{c.row(c.at - 1), fmt.Sprintf("the second reader finds %d values and nulls, Arrow's %d", c.at, l.Count)}
	}
	return nil
}

// release keeps the memory for another comparison.
func (c *comparison) release() {
	clear(c.texts)
	*c = comparison{texts: c.texts[:0], numbers: c.numbers[:0], packed: c.packed, levels: c.levels, indices: c.indices, bits: c.bits}
	comparisons.Put(c)
}

// row returns the row of a value or null, from 1; 0 before the first.
func (c *comparison) row(at int) (row int64) {
	if c.leaf.Repetition == nil {
		return int64(at) + 1
	}
	for _, r := range c.leaf.Repetition[:at+1] {
		if r == 0 {
			row++
		}
	}
	return row
}

// valueRow returns the row of a value, given by its number among the values.
func (c *comparison) valueRow(value int) int64 {
	if c.leaf.Definition == nil {
		return c.row(value)
	}
	for at, d := range c.leaf.Definition {
		if d == c.leaf.MaxDefinition {
			if value == 0 {
				return c.row(at)
			}
			value--
		}
	}
	return c.row(c.leaf.Count - 1)
}

// page compares a page.
func (c *comparison) page(h *parquet.PageHeader, data []byte) error {
	if h.DictionaryPageHeader != nil {
		return c.dictionary(data, int(h.DictionaryPageHeader.NumValues))
	}
	l, n := c.leaf, int(h.DataPageHeader.NumValues)
	if n > l.Count-c.at {
		return &differError{c.row(c.at - 1), "the second reader finds more values than Arrow's"}
	}
	if h.DataPageHeader.DefinitionLevelEncoding != parquet.Encoding_RLE || h.DataPageHeader.RepetitionLevelEncoding != parquet.Encoding_RLE {
		return errors.New("levels in an encoding that no dataset has")
	}
	there, err := n, error(nil)
	if l.Repetition != nil {
		if data, _, err = c.compareLevels(data, l.Repetition[c.at:c.at+n], l.MaxRepetition); err != nil {
			return err
		}
	}
	if l.Definition != nil {
		if data, there, err = c.compareLevels(data, l.Definition[c.at:c.at+n], l.MaxDefinition); err != nil {
			return err
		}
	}
	if have := l.present(); there > have-c.there {
		return &differError{c.valueRow(have), "the two readers find different values"}
	}
	switch h.DataPageHeader.Encoding {
	case parquet.Encoding_PLAIN:
		err = c.plain(data, there)
	case parquet.Encoding_PLAIN_DICTIONARY, parquet.Encoding_RLE_DICTIONARY:
		err = c.coded(data, there)
	default:
		err = fmt.Errorf("values encoded as %s, which no dataset has", h.DataPageHeader.Encoding)
	}
	c.at, c.there = c.at+n, c.there+there
	return err
}

// compareLevels compares the levels at the beginning of a page with Arrow's. It returns
// the bytes behind them, and how many are the largest.
func (c *comparison) compareLevels(data []byte, want []int16, largest int16) (rest []byte, full int, err error) {
	packed, rest, err := levelBytes(data)
	if err != nil {
		return nil, 0, err
	}
	c.levels = resized(c.levels, len(want))
	if err := unpackRuns(c.levels, packed, bitWidth(largest)); err != nil {
		return nil, 0, fmt.Errorf("the levels of a page: %w", err)
	}
	for i, level := range c.levels {
		if level != want[i] || level > largest {
			return nil, 0, &differError{c.row(c.at + i), "the two readers disagree on what is null, or where a list ends"}
		}
		if level == largest {
			full++
		}
	}
	return rest, full, nil
}

// dictionary reads the page of a dictionary.
func (c *comparison) dictionary(data []byte, n int) error {
	if c.hasDictionary {
		return errors.New("two dictionaries")
	}
	c.hasDictionary = true
	if c.kind == parquet.Type_BYTE_ARRAY {
		if err := checkTexts(data, n); err != nil {
			return fmt.Errorf("the dictionary: %w", err)
		}
	}
	in := bytes.NewReader(data)
	values, err := encoding.ReadPlain(in, c.kind, uint64(n), 0)
	if err == nil && in.Len() > 0 {
		err = errTrailing
	}
	if err != nil {
		return fmt.Errorf("the dictionary: %w", err)
	}
	for _, value := range values {
		switch v := value.(type) {
		case string:
			c.texts = append(c.texts, knownText{text: v})
		case int64:
			c.numbers = append(c.numbers, v)
		case int32:
			c.numbers = append(c.numbers, int64(v))
		case float64:
			c.numbers = append(c.numbers, int64(math.Float64bits(v)))
		default:
			return fmt.Errorf("a dictionary of %s, which no dataset has", c.kind)
		}
	}
	return nil
}

// coded compares a page of indices into the dictionary.
func (c *comparison) coded(data []byte, there int) (err error) {
	if there == 0 && len(data) == 0 {
		return nil
	}
	if len(data) == 0 {
		return errTooFew
	}
	c.indices = resized(c.indices, there)
	if err := unpackRuns(c.indices, data[1:], int(data[0])); err != nil {
		return fmt.Errorf("the indices of a page: %w", err)
	}
	same := 0
	if c.kind == parquet.Type_BYTE_ARRAY {
		same, err = sameTexts(c.leaf.Texts[c.there:c.there+there], c.indices, c.texts)
	} else {
		same, err = sameNumbers(c.numbersOf(there), c.indices, c.numbers)
	}
	return c.result(same, there, err)
}

// plain compares a page of values as they are.
func (c *comparison) plain(data []byte, there int) (err error) {
	same := 0
	switch c.kind {
	case parquet.Type_BYTE_ARRAY:
		same, err = samePlainTexts(c.leaf.Texts[c.there:c.there+there], data)
	case parquet.Type_BOOLEAN:
		same, err = samePlainBooleans(c.leaf.Booleans[c.there:c.there+there], data)
	case parquet.Type_INT32:
		same, err = samePlain32(c.numbersOf(there), data)
	case parquet.Type_INT64, parquet.Type_DOUBLE:
		same, err = samePlain64(c.numbersOf(there), data)
	default:
		return fmt.Errorf("values of type %s, which no dataset has", c.kind)
	}
	return c.result(same, there, err)
}

// numbersOf returns the next of Arrow's numbers. Of fractions these are the bits.
func (c *comparison) numbersOf(there int) []int64 {
	if c.kind != parquet.Type_DOUBLE {
		return c.leaf.Numbers[c.there : c.there+there]
	}
	c.bits = resized(c.bits, there)
	for i, f := range c.leaf.Floats[c.there : c.there+there] {
		c.bits[i] = int64(math.Float64bits(f))
	}
	return c.bits
}

// result describes the first value of a page that differs, if there is one.
func (c *comparison) result(same, there int, err error) error {
	if err == nil && same < there {
		return &differError{c.valueRow(c.there + same), "the two readers find different values"}
	}
	return err
}

// rows counts the rows of a leaf.
func (l *leaf) rows() (n int64) {
	if l.Repetition == nil {
		return int64(l.Count)
	}
	for _, r := range l.Repetition {
		if r == 0 {
			n++
		}
	}
	return n
}
