package records

import (
	"hash/maphash"
	"strings"
)

// maxDictionary bounds the texts of a dictionary. Later texts are written into their
// records.
const maxDictionary = 1 << 16

// dictionary numbers the texts of a field from 0, in the order in which they come.
//
// It is a hash table of its own, because the look-ups were a tenth of the time of an import
// with a map. A text that a full dictionary lacks costs little more than a look at a slot.
type dictionary struct {
	texts []string
	slots []slot // as many as a power of two, at most half of them used
	seed  maphash.Seed
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
	sum := maphash.String(d.seed, text)
	hash, mask := uint32(sum>>32), uint32(len(d.slots)-1)
	at := uint32(sum) & mask
	for ; d.slots[at].number != 0; at = (at + 1) & mask {
		if s := d.slots[at]; s.hash == hash && d.texts[s.number-1] == text {
			return uint64(s.number - 1), true
		}
	}
	if len(d.texts) == maxDictionary {
		return 0, false
	}
	d.texts = append(d.texts, strings.Clone(text))
	d.slots[at] = slot{hash, uint32(len(d.texts))}
	if 2*len(d.texts) > len(d.slots) {
		d.grow()
	}
	return uint64(len(d.texts) - 1), true
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
