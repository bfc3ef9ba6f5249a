package directory

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
)

// lexicon numbers distinct texts in the order they come, from 0. A text costs
// it some thirty bytes of memory whatever its length: it is told from others
// by 128 bits that nobody can foresee, and lies in a spool.
type lexicon struct {
	seeds [2]maphash.Seed
	codes map[[16]byte]uint32
	text  *spool[uint8]
	ends  *spool[uint64]
	size  uint64
}

func newLexicon(path string) (*lexicon, error) {
	text, err := newSpool[uint8](path)
	if err != nil {
		return nil, err
	}
	ends, err := newSpool[uint64](path)
	if err != nil {
		return nil, errors.Join(err, text.close())
	}
	l := &lexicon{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, codes: map[[16]byte]uint32{}, text: text, ends: ends}
	return l, ends.add(0)
}

// code is the number of text; added says that it has it from now on.
func (l *lexicon) code(text string) (code uint32, added bool, err error) {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], maphash.String(l.seeds[0], text))
	binary.NativeEndian.PutUint64(id[8:], maphash.String(l.seeds[1], text))
	if code, ok := l.codes[id]; ok {
		return code, false, nil
	}
	if len(l.codes) == math.MaxInt32 {
		return 0, false, errTooMany
	}
	code = uint32(len(l.codes))
	l.codes[id] = code
	l.size += uint64(len(text))
	if _, err := l.text.w.WriteString(text); err != nil {
		return 0, false, err
	}
	return code, true, l.ends.add(l.size)
}

func (l *lexicon) len() int { return l.ends.n - 1 }

// read ends the numbering, forgets who had which number, and gives the texts.
func (l *lexicon) read() (texts, error) {
	l.codes = nil
	ends, err := l.ends.read()
	if err != nil {
		return texts{}, err
	}
	text, err := l.text.read()
	return texts{ends, text}, err
}

func (l *lexicon) close() error { return errors.Join(l.text.close(), l.ends.close()) }

// texts are strings end to end; offsets has one more member than there are
// texts.
type texts struct {
	offsets []uint64
	bytes   []byte
}

func (t texts) len() int { return len(t.offsets) - 1 }

// at is valid as long as what t was read from.
func (t texts) at(i uint32) []byte { return t.bytes[t.offsets[i]:t.offsets[i+1]] }

// lists are lists of codes end to end, as texts are.
type lists struct {
	offsets []uint64
	members []uint32
}

func (l lists) len() int { return len(l.offsets) - 1 }

func (l lists) at(i uint32) []uint32 { return l.members[l.offsets[i]:l.offsets[i+1]] }
