package keyed

import (
	"strings"

	"github.com/leadetl/leadetl/internal/codes"
)

// Dictionary has the texts of a field that come again. Text i is Data[Offsets[i]:Offsets[i+1]],
// as in a string array of Arrow.
type Dictionary struct {
	Data    []byte
	Offsets []int32
}

// Len is the number of texts.
func (d *Dictionary) Len() int { return max(0, len(d.Offsets)-1) }

// At is the text of a code.
func (d *Dictionary) At(code int32) []byte { return d.Data[d.Offsets[code]:d.Offsets[code+1]] }

// A dictionary takes firstTexts, and up to moreTexts where they have little text and come
// again. Later texts are written into their records, which makes look-ups slower: a column
// of answers is codes only where all of its texts have one.
const (
	firstTexts   = 1 << 16
	moreTexts    = 1 << 17
	maxMoreBytes = 4 << 20
)

// numbering makes a dictionary: it numbers the texts of a field from 0, in the order in which they come. A text that a
// full dictionary lacks costs little more than a look at a slot.
type numbering struct {
	texts []string
	table codes.Table
	bytes int // of texts
	asked int // texts
	known int // of those, texts that were in the dictionary
}

// code returns the number of a text, and adds it while there is room.
func (d *numbering) code(text string) (code uint64, ok bool) {
	d.asked++
	hash := codes.HashOf(text)
	if code, found := d.table.Find(hash, func(code uint32) bool { return d.texts[code] == text }); found {
		d.known++
		return uint64(code), true
	}
	if d.isFull() {
		return 0, false
	}
	d.bytes += len(text)
	d.texts = append(d.texts, strings.Clone(text))
	return uint64(d.table.Add(hash)), true
}

// isFull reports whether there is no room. More than firstTexts have room where every fourth
// text was known: of 100,000 texts in random order, more than a third are by then.
func (d *numbering) isFull() bool {
	n := len(d.texts)
	return n >= firstTexts && (n >= moreTexts || d.bytes > maxMoreBytes || 4*d.known < d.asked)
}
