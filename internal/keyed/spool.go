package keyed

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"os"
	"unsafe"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Spool is a list of values that is first written from front to back and then read as memory.
// More than some go to a temporary file, whose pages the kernel can write to disk, unlike those
// of the heap. So what is built in spools may have any size and needs little memory.
type Spool[T Fixed] struct {
	scratch string
	pending []T      // not in the file
	file    *os.File // nil while there are few values
	end     int64    // of the file
	n       int
	mapped  []byte
}

// spoolBytes is how many bytes of values are written together.
const spoolBytes = 1 << 16

// NewSpool makes an empty spool, with its temporary file in the folder scratch.
func NewSpool[T Fixed](scratch string) *Spool[T] { return &Spool[T]{scratch: scratch} }

// Len is the number of values.
func (s *Spool[T]) Len() int { return s.n }

// Add appends values.
func (s *Spool[T]) Add(values ...T) error {
	s.n += len(values)
	s.pending = append(s.pending, values...)
	if len(bytesOf(s.pending)) < spoolBytes {
		return nil
	}
	return s.flush()
}

// flush moves what is pending to the file.
func (s *Spool[T]) flush() (err error) {
	if s.file == nil {
		if s.file, err = atomicfile.Nameless(s.scratch); err != nil {
			return err
		}
	}
	n, err := s.file.WriteAt(bytesOf(s.pending), s.end)
	s.end += int64(n)
	s.pending = s.pending[:0]
	return err
}

// Read ends the writing and returns all values. They are valid until Close.
func (s *Spool[T]) Read() ([]T, error) {
	if s.file == nil {
		return s.pending, nil
	}
	if s.mapped == nil {
		if err := s.flush(); err != nil {
			return nil, err
		}
		var err error
		if s.mapped, err = mapFile(s.file); err != nil {
			return nil, err
		}
	}
	return view[T](s.mapped), nil
}

// Close frees disk and memory. It may be called again.
func (s *Spool[T]) Close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(unmap(s.mapped), s.file.Close())
	*s = Spool[T]{}
	return err
}

// scratchColumn is a column of zeros whose memory the kernel can write to disk, too, but that may be
// written anywhere. free ends its use.
func scratchColumn(scratch string, n int) (column []uint32, free func() error, err error) {
	file, err := atomicfile.Nameless(scratch)
	if err != nil {
		return nil, nil, err
	}
	zeros := make([]byte, spoolBytes)
	for left, size := 4*n, 4*n; left > 0; left -= len(zeros) { // a full disk is an error here, and no fault later
		if _, err := file.WriteAt(zeros[:min(left, len(zeros))], int64(size-left)); err != nil {
			return nil, nil, errors.Join(err, file.Close())
		}
	}
	data, err := mapMemory(file, 4*n)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return view[uint32](data), func() error { return errors.Join(unmap(data), file.Close()) }, nil
}

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
