package records

import (
	"hash/maphash"
	"strings"
)

// A dictionary takes firstTexts, and up to moreTexts where they have little text and come
// again. Later texts are written into their records, which makes look-ups slower: a column
// of answers is codes only where all of its texts have one.
const (
	firstTexts   = 1 << 16
	moreTexts    = 1 << 17
	maxMoreBytes = 4 << 20
)

// dictionary numbers the texts of a field from 0, in the order in which they come.
//
// It is a hash table of its own, because the look-ups were a tenth of the time of an import
// with a map. A text that a full dictionary lacks costs little more than a look at a slot.
type dictionary struct {
	texts []string
	slots []slot // as many as a power of two, at most half of them used
	seed  maphash.Seed
	bytes int // of texts
	asked int // texts
	known int // of those, texts that were in the dictionary
}

// slot is the place of a text.
type slot struct {
	hash   uint32
	number uint32 // of the text, from 1; 0 for a free slot
}

func newDictionary() *dictionary {
	return &dictionary{slots: make([]slot, 64), seed: maphash.MakeSeed()}
}

// code returns the number of a text, and adds it while there is room.
func (d *dictionary) code(text string) (code uint64, ok bool) {
	d.asked++
	sum := maphash.String(d.seed, text)
	hash, mask := uint32(sum>>32), uint32(len(d.slots)-1)
	at := uint32(sum) & mask
	for ; d.slots[at].number != 0; at = (at + 1) & mask {
		if s := d.slots[at]; s.hash == hash && d.texts[s.number-1] == text {
			d.known++
			return uint64(s.number - 1), true
		}
	}
	if d.isFull() {
		return 0, false
	}
	d.bytes += len(text)
	d.texts = append(d.texts, strings.Clone(text))
	d.slots[at] = slot{hash, uint32(len(d.texts))}
	if 2*len(d.texts) > len(d.slots) {
		d.grow()
	}
	return uint64(len(d.texts) - 1), true
}

// isFull reports whether there is no room. More than firstTexts have room where every fourth
// text was known: of 100,000 texts in random order, more than a third are by then.
func (d *dictionary) isFull() bool {
	n := len(d.texts)
	return n >= firstTexts && (n >= moreTexts || d.bytes > maxMoreBytes || 4*d.known < d.asked)
}

// grow doubles the slots.
func (d *dictionary) grow() {
	d.slots = make([]slot, 2*len(d.slots))
	mask := uint32(len(d.slots) - 1)
	for i, text := range d.texts {
		sum := maphash.String(d.seed, text)
		at := uint32(sum) & mask
		for d.slots[at].number != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = slot{uint32(sum >> 32), uint32(i + 1)}
	}
}
