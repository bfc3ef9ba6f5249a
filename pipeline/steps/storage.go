package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/pipeline/journal"
)

// storage is a journal with an object for each part, so that many processes can
// write to it. It reads the records of some parts only.
type storage struct {
	ctx          context.Context // never cancelled
	run          *Run
	first, parts int // which parts to read
}

var _ journal.Storage = (*storage)(nil)

// String is journal.Storage's.
func (s *storage) String() string { return s.run.folder.String() }

// Read is journal.Storage's.
func (s *storage) Read() ([]byte, error) {
	header, err := s.run.folder.Get(s.ctx, jobName)
	if err != nil {
		return nil, err
	}
	var read jobFile
	if err := decode(s.run.folder.Path(jobName), header, &read); err != nil {
		return nil, err
	}
	if s.parts == 0 || read.Run != s.run.job.Run {
		return header, nil
	}
	var names []string // by their numbers: a list may lack some
	for number := s.first; number < s.first+s.parts; number++ {
		names = append(names, s.run.Name(partName(number)))
	}
	work := progress.Of(s.ctx)
	work.Expect(int64(len(names)))
	lines := header
	for some := range slices.Chunk(names, recordsAtOnce) {
		records, err := s.run.folder.GetSome(s.ctx, some)
		if err != nil {
			return nil, err
		}
		lines = append(lines, bytes.Join(records, nil)...)
		work.Done(int64(len(some)))
	}
	return lines, nil
}

// recordsAtOnce is how many records of parts are read before they count as read.
const recordsAtOnce = 256

// Begin writes the records of parts, and then the job, which makes them count.
func (s *storage) Begin(lines []byte) error {
	header, records, _ := bytes.Cut(lines, []byte("\n"))
	for line := range bytes.Lines(records) {
		number, err := s.put(line)
		if err != nil {
			return err
		}
		s.run.job.Earlier = append(s.run.job.Earlier, number)
	}
	if err := json.Unmarshal(header, &s.run.job.Header); err != nil {
		return err
	}
	data, err := json.Marshal(s.run.job)
	if err != nil {
		return err
	}
	return s.run.folder.Put(s.ctx, jobName, append(data, '\n'))
}

// Append records a part.
func (s *storage) Append(line []byte) error {
	_, err := s.put(line)
	return err
}

// put writes the record of a part, and returns the part's number.
func (s *storage) put(line []byte) (number int, err error) {
	var record struct {
		Number *int `json:"number"`
	}
	if err := json.Unmarshal(line, &record); err != nil || record.Number == nil {
		return 0, errors.Join(errors.New("a record of a part without its number"), err)
	}
	return *record.Number, s.run.folder.Put(s.ctx, s.run.Name(partName(*record.Number)), line)
}

func (s *storage) beside(name string) string { return s.run.Name("beside/" + name) }

// Put is journal.Storage's.
func (s *storage) Put(name string, data []byte) error {
	return s.run.folder.Put(s.ctx, s.beside(name), data)
}

// Get is journal.Storage's.
func (s *storage) Get(name string) ([]byte, error) {
	return s.run.folder.Get(s.ctx, s.beside(name))
}

// Drop is journal.Storage's.
func (s *storage) Drop(prefix, keep string) error {
	return s.run.folder.Drop(s.ctx, s.beside(prefix), s.beside(keep))
}

// Remove removes all objects of the run, and last the job, so that a process that
// is killed on the way is repeated.
func (s *storage) Remove() error {
	err := s.run.folder.Remove(s.ctx, "", jobName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close is journal.Storage's.
func (s *storage) Close() error { return nil }
