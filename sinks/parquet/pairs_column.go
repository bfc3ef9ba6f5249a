package parquet

import (
	"math/bits"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
)

// pairsColumn is a column of lists of two texts: an email and its type. The
// first texts are in PLAIN pages. The second texts are few distinct words, and
// have a dictionary where that is smaller.
//
// Arrow's own writer took a quarter of the time of enrichment for four such
// leaves, and copied all values to the heap.
type pairsColumn struct {
	first  pairsFirst
	second pairsSecond
}

// pairsFirst is the leaf of the first texts.
type pairsFirst struct {
	plain *textColumn
}

// pairsSecond is the leaf of the second texts.
type pairsSecond struct {
	plain  *textColumn // what writes pages
	words  dictionary
	levels []byte   // of all places of the row group
	there  []uint32 // the number of each word that is there
}

// isPairs reports whether values of a type are lists of two texts.
func isPairs(t arrow.DataType) bool {
	l, ok := t.(*arrow.ListType)
	if !ok {
		return false
	}
	pair, ok := l.Elem().(*arrow.StructType)
	return ok && pair.NumFields() == 2 && pair.Field(0).Type.ID() == arrow.STRING && pair.Field(1).Type.ID() == arrow.STRING
}

// newPairsColumn makes the column of the writer of its first texts, and of the compression of
// the second.
func newPairsColumn(first *textColumn, compress func(dst, src []byte) []byte) *pairsColumn {
	second := *first
	second.compress = compress
	return &pairsColumn{pairsFirst{first}, pairsSecond{plain: &second}}
}

// Levels of a place: how much of it is there, and whether it continues with the list
// of the place before. Source: Apache Parquet format, "Nested Encoding".
const (
	levelMask  = 7
	continues  = 8
	memberNull = memberValue - 1
	levelWidth = 3 // bits of a definition level
)

func (c *pairsColumn) add(a arrow.Array) {
	list := a.(*array.List)
	pairs := list.ListValues().(*array.Struct)
	first, second := cellsOf(pairs.Field(0), 0), c.second.wordsOf(pairs.Field(1))
	anyNull := first.nulls.NullN() > 0
	for row := range list.Len() {
		p := c.first.page()
		from, to := list.ValueOffsets(row)
		switch {
		case list.IsNull(row):
			p.levels, c.second.levels = append(p.levels, listNull), append(c.second.levels, listNull)
		case from == to:
			p.levels, c.second.levels = append(p.levels, listEmpty), append(c.second.levels, listEmpty)
		default:
			p.addTexts(&first, int(from), int(to), anyNull)
			second.add(int(from), int(to))
		}
	}
}

// addTexts adds a list of texts.
func (p *page) addTexts(texts *cells, from, to int, anyNull bool) {
	levels, data, more := p.levels, p.data, byte(0)
	for v := from; v < to; v++ {
		level := byte(memberNull)
		if !anyNull || texts.nulls.IsValid(v) {
			level, data = memberValue, appendCell(data, texts.at(v), 0)
		}
		levels, more = append(levels, level|more), continues
	}
	p.levels, p.data = levels, data
}

// pairWords are the second texts of an array, or their codes.
type pairWords struct {
	to      *pairsSecond
	nulls   arrow.Array
	anyNull bool
	cells   cells
	codes   []int32  // nil for texts
	number  []uint32 // by code: of the word + 1; 0 for one not seen
}

func (c *pairsSecond) wordsOf(a arrow.Array) *pairWords {
	w := &pairWords{to: c, nulls: a, anyNull: a.NullN() > 0}
	if d, coded := a.(*array.Dictionary); coded {
		w.codes, w.cells = d.Indices().(*array.Int32).Int32Values(), cellsOf(d.Dictionary(), 0)
		w.number = make([]uint32, d.Dictionary().Len())
	} else {
		w.cells = cellsOf(a, 0)
	}
	return w
}

// add adds a list of words.
func (w *pairWords) add(from, to int) {
	levels, there, more := w.to.levels, w.to.there, byte(0)
	for v := from; v < to; v++ {
		level := byte(memberNull)
		if !w.anyNull || w.nulls.IsValid(v) {
			level, there = memberValue, append(there, w.at(v))
		}
		levels, more = append(levels, level|more), continues
	}
	w.to.levels, w.to.there = levels, there
}

// at returns the number of a word.
func (w *pairWords) at(i int) (number uint32) {
	if w.codes == nil {
		number, _ = w.to.words.number(w.cells.at(i))
		return number
	}
	code := w.codes[i]
	if w.number[code] == 0 {
		number, _ = w.to.words.number(w.cells.at(int(code)))
		w.number[code] = number + 1
	}
	return w.number[code] - 1
}

// page returns the page for the next row.
func (c *pairsFirst) page() *page {
	if n := len(c.plain.pages); n > 0 {
		if p := c.plain.pages[n-1]; len(p.data) < c.plain.limit.bytes && len(p.levels) < c.plain.limit.values {
			return p
		}
	}
	p := c.plain.pool.get()
	c.plain.pages = append(c.plain.pages, p)
	return p
}

func (c *pairsColumn) held() int {
	return c.first.plain.held() + len(c.second.levels) + rowBytes*len(c.second.there) + len(c.second.words.data)
}

func (c *pairsColumn) flush(g *rowGroup) error {
	if err := c.first.flush(g); err != nil {
		return err
	}
	return c.second.flush(g)
}

func (c *pairsFirst) flush(g *rowGroup) error {
	_, out, err := g.nextLeaf()
	if err != nil {
		return err
	}
	for _, p := range c.plain.pages {
		if err := c.plain.writeNested(g, out, p.levels, p.data[levelRoom:], parquet.Encodings.Plain); err != nil {
			return err
		}
		c.plain.pool.put(p)
	}
	clear(c.plain.pages)
	c.plain.pages = c.plain.pages[:0]
	return out.Close(false, false)
}

// flush writes the pages with the dictionary, if it is clearly smaller.
func (c *pairsSecond) flush(g *rowGroup) error {
	_, out, err := g.nextLeaf()
	if err != nil {
		return err
	}
	width := c.words.bits()
	plain := 0
	for _, number := range c.there {
		plain += lengthBytes + len(c.words.value(number))
	}
	pays := len(c.words.data) <= dictionaryBytes && c.words.pays(len(c.there), plain)
	if pays {
		if err := c.words.writeTo(out, g); err != nil {
			return err
		}
	}
	for levels, there := c.levels, c.there; len(levels) > 0; {
		n, values := c.pageOf(levels, there, width, pays)
		p := c.plain.pool.get()
		data, encoding := p.data[levelRoom:], parquet.Encodings.Plain
		if pays {
			data, encoding = appendNumbers(append(data, byte(width)), there[:values], width), parquet.Encodings.PlainDict
		} else {
			for _, number := range there[:values] {
				data = appendCell(data, c.words.value(number), 0)
			}
		}
		err := c.plain.writeNested(g, out, levels[:n], data, encoding)
		c.plain.pool.put(p)
		if err != nil {
			return err
		}
		levels, there = levels[n:], there[values:]
	}
	if c.plain.pool.Growing {
		c.words, c.levels, c.there = dictionary{}, nil, nil
	} else {
		c.words.reset()
		c.levels, c.there = c.levels[:0], c.there[:0]
	}
	return out.Close(pays, false)
}

// pageOf is how many places and values the next page has: whole rows.
func (c *pairsSecond) pageOf(levels []byte, there []uint32, width int, pays bool) (places, values int) {
	size := 0
	for places < len(levels) && (levels[places]&continues > 0 || places < c.plain.limit.values && size < 8*c.plain.limit.bytes) {
		if levels[places]&levelMask == memberValue {
			if size += width; !pays {
				size += 8 * (lengthBytes + len(c.words.value(there[values])))
			}
			values++
		}
		places++
	}
	return places, values
}

// writeNested writes a page of places with their levels.
func (c *textColumn) writeNested(g *rowGroup, out file.PageWriter, levels, values []byte, encoding parquet.Encoding) error {
	plain := appendLevels(g.scratch[:0], levels, bits.TrailingZeros8(continues), 1)
	plain = appendLevels(plain, levels, 0, levelWidth)
	plain = append(plain, values...)
	g.scratch = plain
	return g.writePage(out, c.compressed(g, plain), len(plain), len(levels), encoding)
}
