package exchange

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// DefaultSortBytes holds a million keys or so.
const DefaultSortBytes = 96 << 20

// Sorter sorts keys by their hashes, and leaves out repeated ones. Keys that do
// not fit into memory go to temporary files, each a file of keys.
type Sorter struct {
	dir     string
	limit   int
	texts   []byte
	entries []sorting
	spilled []spill
}

// sorting is a key in memory. The text is behind the hash in texts.
type sorting struct {
	prefix   uint64 // of the hash
	at, size uint32
}

type spill struct {
	file *os.File
	keys *Keys
}

const (
	hashBytes = len(answers.Hash{})
	// sortingBytes is the size of a sorting.
	sortingBytes = 16
)

// NewSorter makes a Sorter that holds at most some bytes of keys in memory, and
// the others in files in dir.
func NewSorter(dir string, limit int) *Sorter { return &Sorter{dir: dir, limit: limit} }

// Add adds a key. It keeps nothing of text.
func (s *Sorter) Add(h answers.Hash, text []byte) error {
	if len(s.texts)+len(s.entries)*sortingBytes+len(h)+len(text) > s.limit && len(s.entries) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.entries = append(s.entries, sorting{binary.BigEndian.Uint64(h[:]), uint32(len(s.texts)), uint32(len(text))})
	s.texts = append(append(s.texts, h[:]...), text...)
	return nil
}

func (s *Sorter) key(e sorting) Key {
	record := s.texts[e.at:][:hashBytes+int(e.size)]
	return Key{Hash: answers.Hash(record[:hashBytes]), Text: record[hashBytes:]}
}

// held lists the keys in memory.
func (s *Sorter) held() iter.Seq2[Key, error] {
	slices.SortFunc(s.entries, func(a, b sorting) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return bytes.Compare(s.texts[a.at:][:hashBytes], s.texts[b.at:][:hashBytes])
	})
	return func(yield func(Key, error) bool) {
		var last Key
		for i, e := range s.entries {
			k := s.key(e)
			if i > 0 && k.Hash == last.Hash {
				continue
			}
			if !yield(k, nil) {
				return
			}
			last = k
		}
	}
}

// spill moves the keys in memory to a file without a name, so that nothing is
// left however the process ends.
func (s *Sorter) spill() error {
	f, err := os.CreateTemp(s.dir, ".keys-")
	if err != nil {
		return err
	}
	s.spilled = append(s.spilled, spill{file: f})
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(WriteKeys(w, s.held()), w.Flush()); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	s.texts, s.entries = s.texts[:0], s.entries[:0]
	s.spilled[len(s.spilled)-1].keys, err = OpenKeys(Object{"temporary file of keys", f, size})
	return err
}

// Sorted lists the distinct keys, ordered by their hashes. A key is valid until
// the next one. No key may be added afterwards.
func (s *Sorter) Sorted() iter.Seq2[Key, error] {
	if len(s.spilled) == 0 {
		return s.held()
	}
	return func(yield func(Key, error) bool) {
		if err := s.spill(); err != nil {
			yield(Key{}, err)
			return
		}
		lists := make([][]Key, len(s.spilled))
		for bucket := range Buckets {
			for i, sp := range s.spilled {
				var err error
				if lists[i], err = sp.keys.Read(bucket, bucket+1); err != nil {
					yield(Key{}, err)
					return
				}
			}
			for k := range merged(lists) {
				if !yield(k.Key, nil) {
					return
				}
			}
		}
	}
}

// Close removes the files.
func (s *Sorter) Close() error {
	var errs []error
	for _, sp := range s.spilled {
		errs = append(errs, sp.file.Close())
	}
	s.spilled = nil
	return errors.Join(errs...)
}
