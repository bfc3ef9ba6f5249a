package exchange

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sort"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// ErrNotInSlices means that a key of a part is in none of its slices: the
// objects of the run do not belong together.
var ErrNotInSlices = errors.New("a key of the part is not in its slices")

// Stored has what is known of all keys of a part, from its slices. It looks up
// keys as answers.Store does. Records are in a temporary file, in the order of
// their hashes; 16 bytes of each are in memory. Fill it first; then it is safe
// for concurrent use.
type Stored struct {
	name     string
	hasher   func() func(key []byte) answers.Hash
	file     *os.File
	buffered *bufio.Writer
	prefixes []uint64 // of the hashes
	ends     []int64  // of the records
	last     answers.Hash
}

// NewStored makes an empty Stored for the keys of a scope, with a file in dir.
// name is that of the part, for errors.
func NewStored(name, dir string, of answers.Scope) (*Stored, error) {
	f, err := os.CreateTemp(dir, ".slices-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil { // nothing is left however the process ends
		return nil, errors.Join(err, f.Close())
	}
	return &Stored{name: name, hasher: of.Hasher, file: f, buffered: bufio.NewWriterSize(f, 1<<20)}, nil
}

// Add adds a record. Hashes rise.
func (s *Stored) Add(r Record) error {
	if len(s.ends) > 0 && r.Hash.Compare(s.last) <= 0 {
		return damaged(s.name, "its slices overlap")
	}
	s.last = r.Hash
	end := int64(hashBytes + len(r.data))
	if n := len(s.ends); n > 0 {
		end += s.ends[n-1]
	}
	s.prefixes, s.ends = append(s.prefixes, binary.BigEndian.Uint64(r.Hash[:])), append(s.ends, end)
	if _, err := s.buffered.Write(r.Hash[:]); err != nil {
		return err
	}
	_, err := s.buffered.Write(r.data)
	return err
}

// Filled ends the filling.
func (s *Stored) Filled() error { return s.buffered.Flush() }

// Close removes the file.
func (s *Stored) Close() error { return s.file.Close() }

// Len returns the number of records.
func (s *Stored) Len() int { return len(s.ends) }

// Lookup is answers.Store.Lookup, for keys of the scope. A key that is in no
// slice is ErrNotInSlices. Which answers are fresh was decided before.
func (s *Stored) Lookup(_ context.Context, _ answers.Scope, keys []string, _ answers.Freshness, bodies bool, into []answers.Found) ([]answers.Found, error) {
	hash := s.hasher()
	for _, key := range keys {
		f, err := s.find(hash([]byte(key)), bodies)
		if err != nil {
			return nil, err
		}
		into = append(into, f)
	}
	return into, nil
}

// LookupHashes is Lookup by the hashes of questions.
func (s *Stored) LookupHashes(_ context.Context, hashes []answers.Hash, _ answers.Freshness, into []answers.Found) ([]answers.Found, error) {
	for _, h := range hashes {
		f, err := s.find(h, false)
		if err != nil {
			return nil, err
		}
		into = append(into, f)
	}
	return into, nil
}

func (s *Stored) find(h answers.Hash, bodies bool) (answers.Found, error) {
	prefix := binary.BigEndian.Uint64(h[:])
	for i := s.search(prefix); i < len(s.prefixes) && s.prefixes[i] == prefix; i++ {
		from := int64(0)
		if i > 0 {
			from = s.ends[i-1]
		}
		record := make([]byte, s.ends[i]-from)
		if _, err := s.file.ReadAt(record, from); err != nil {
			return answers.Found{}, err
		}
		if answers.Hash(record[:hashBytes]) != h {
			continue
		}
		d := fields.Reader{Rest: record[hashBytes:]}
		f := decodeFound(&d)
		if d.Broken {
			return f, damaged(s.name, "impossible record in its slices")
		}
		if !bodies {
			f.Answer.Body = nil
		}
		return f, nil
	}
	return answers.Found{}, fmt.Errorf("%s: %w; its steps have to be done again", s.name, ErrNotInSlices)
}

// search returns the index of the first record whose hash begins with prefix
// or more. Hashes are uniform, so it looks first where the prefix should be.
func (s *Stored) search(prefix uint64) int {
	n := len(s.prefixes)
	guess := int(float64(prefix) / (1 << 64) * float64(n))
	for width := 32; ; width *= 8 {
		from, to := max(guess-width, 0), min(guess+width, n)
		if (from == 0 || s.prefixes[from-1] < prefix) && (to == n || s.prefixes[to] >= prefix) {
			return from + sort.Search(to-from, func(i int) bool { return s.prefixes[from+i] >= prefix })
		}
	}
}
