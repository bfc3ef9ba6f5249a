package keyed

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"unsafe"
)

// Lexicon numbers distinct texts in their order, from 0. A text takes about 30 bytes of memory,
// whatever its length: the texts are in a spool, and 128 bits of a seeded hash identify
// them.
type Lexicon struct {
	seeds [2]maphash.Seed
	codes map[[16]byte]uint32
	text  *Spool[uint8]
	ends  *Spool[uint64]
	size  uint64
}

// NewLexicon makes an empty lexicon, with its spools in the folder scratch.
func NewLexicon(scratch string) *Lexicon {
	l := &Lexicon{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, codes: map[[16]byte]uint32{},
		text: NewSpool[uint8](scratch), ends: NewSpool[uint64](scratch),
	}
	_ = l.ends.Add(0) // one value stays in memory
	return l
}

// Code returns the number of a text; added is true if the text is new.
func (l *Lexicon) Code(text string) (code uint32, added bool, err error) {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], maphash.String(l.seeds[0], text))
	binary.NativeEndian.PutUint64(id[8:], maphash.String(l.seeds[1], text))
	if code, ok := l.codes[id]; ok {
		return code, false, nil
	}
	if len(l.codes) == math.MaxInt32 {
		return 0, false, ErrFull
	}
	code = uint32(len(l.codes))
	l.codes[id] = code
	l.size += uint64(len(text))
	if err := l.text.Add(unsafe.Slice(unsafe.StringData(text), len(text))...); err != nil {
		return 0, false, err
	}
	return code, true, l.ends.Add(l.size)
}

// Len is the number of texts.
func (l *Lexicon) Len() int { return l.ends.n - 1 }

// Read ends the numbering and returns the texts. They are valid until Close.
func (l *Lexicon) Read() (Texts, error) {
	l.codes = nil
	ends, err := l.ends.Read()
	if err != nil {
		return Texts{}, err
	}
	text, err := l.text.Read()
	return Texts{ends, text}, err
}

// Close frees disk and memory. It may be called again.
func (l *Lexicon) Close() error { return errors.Join(l.text.Close(), l.ends.Close()) }
