// Package journal keeps the durable progress of unfinished datasets. A part that
// is not in the journal of its dataset does not count.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Journal is the durable progress of one unfinished dataset: a line for the
// job, then a line a recorded part, each stored before it counts. It is removed
// when the dataset is finished.
type Journal struct {
	storage Storage
	turn    longlock.Lock // of appends
	run     string        // that Read found
	begun   bool
}

// Storage is where a journal is. What a method has written is durable when it
// returns, and data stays the caller's. A Journal calls Read once, then Begin once, then
// Append for each part, one at a time; Put and Get at any time, from all workers. Remove or
// Close ends it.
type Storage interface {
	// Read returns the lines; fs.ErrNotExist without a journal, appendlog.ErrDamaged if any
	// has changed or is missing.
	Read() ([]byte, error)
	// Begin replaces all lines.
	Begin(lines []byte) error
	// Append adds lines, after Begin.
	Append(lines []byte) error
	// Put keeps a file of a few megabytes at most beside the journal. It does not keep data.
	Put(name string, data []byte) error
	// Get returns what Put kept; fs.ErrNotExist without it.
	Get(name string) ([]byte, error)
	// Drop removes the files whose names begin with prefix, except those whose names begin
	// with keep.
	Drop(prefix, keep string) error
	// Remove removes the lines and files: what is left when it is killed counts as removed.
	Remove() error
	// Close releases what Begin has opened.
	Close() error
	// String names it for messages.
	String() string
}

// Header is what a journal says of its job.
type Header struct {
	JobID string `json:"job_id"`
	// Job is the identity whose hash JobID is, to say what another job changes.
	Job json.RawMessage `json:"job,omitempty"`
	// Run names the work on the dataset from its first process to the one that
	// finishes it, and after that to those that repair it. BegunAt is when its first
	// process since the dataset was finished began.
	Run     string    `json:"run"`
	BegunAt time.Time `json:"begun_at"`
	// PaidBefore are credits of the dataset that are not counted under Run: those of runs
	// that finished it before, if the state does not have them.
	PaidBefore int64         `json:"paid_before,omitempty"`
	AsOf       string        `json:"as_of,omitempty"` // the day that searches take for today
	Out        string        `json:"out"`
	Inputs     []sinks.Input `json:"inputs"` // as they were when the job was begun
}

type part struct {
	Number int        `json:"number"`
	Part   sinks.Part `json:"part"`
}

// New is the journal in a storage; it touches nothing.
func New(storage Storage) *Journal { return &Journal{storage: storage, turn: longlock.New()} }

// Read returns the recorded parts by number and the job they are of; no
// journal gives a zero header. What a crash or a power cut left incomplete is not among the
// lines of a Storage.
func (j *Journal) Read() (header Header, parts map[int]sinks.Part, err error) {
	data, err := j.storage.Read()
	if errors.Is(err, fs.ErrNotExist) {
		data, err = j.storage.Get(headerName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return header, nil, nil
	}
	if err != nil {
		return header, nil, err
	}
	if header, parts, err = decodeLines(data); err != nil {
		return header, nil, fmt.Errorf("%s: %w: %w", j.storage, appendlog.ErrDamaged, err)
	}
	j.run = header.Run
	return header, parts, nil
}

// decodeLines decodes the lines of a journal.
func decodeLines(data []byte) (header Header, parts map[int]sinks.Part, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&header); err != nil {
		return header, nil, err
	}
	parts = map[int]sinks.Part{}
	for decoder.More() {
		var p part
		if err := decoder.Decode(&p); err != nil {
			return header, nil, err
		}
		parts[p.Number] = p.Part
	}
	return header, parts, nil
}

// Begin replaces the journal by one that holds parts and takes more. What was kept as judged
// stays with its run.
func (j *Journal) Begin(header Header, parts map[int]sinks.Part) error {
	if header.Run != j.run {
		if judged, err := j.Judged(); judged != nil || err != nil {
			if err := j.KeepJudged(nil); err != nil {
				return err
			}
		}
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	if err := encoder.Encode(header); err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(parts)) {
		if err := encoder.Encode(part{number, parts[number]}); err != nil {
			return err
		}
	}
	first, _, _ := bytes.Cut(lines.Bytes(), []byte("\n"))
	err := j.storage.Put(headerName, first)
	if err == nil {
		err = j.storage.Begin(lines.Bytes())
	}
	j.begun = err == nil
	return err
}

// Record makes a part count. It is safe from several goroutines.
func (j *Journal) Record(number int, p sinks.Part) error {
	line, err := json.Marshal(part{number, p})
	if err != nil {
		return err
	}
	j.turn.Lock()
	defer j.turn.Unlock()
	return j.storage.Append(append(line, '\n'))
}

// headerName has the header beside the journal. If the journal is gone, the header says which run has
// made the dataset: what that has spent is counted under its name. Its parts are made again.
const headerName = "header"

const foundPrefix = "found-"

func foundName(number int) string { return fmt.Sprintf("%s%05d", foundPrefix, number) }

// KeepFound keeps which entries of suppression lists a part has found. It is
// durable when it returns.
func (j *Journal) KeepFound(number int, found suppression.Found) error {
	return j.storage.Put(foundName(number), found.Encode())
}

// Found is what KeepFound kept.
func (j *Journal) Found(number int) (suppression.Found, error) {
	data, err := j.storage.Get(foundName(number))
	if err != nil {
		return nil, err
	}
	return suppression.DecodeFound(data)
}

const judgedName = "judged"

// KeepJudged keeps which resolvers of an order are asked on, by their names. It is durable when it
// returns.
func (j *Journal) KeepJudged(judged map[string]bool) error {
	data, err := json.Marshal(judged)
	if err != nil {
		return err
	}
	return j.storage.Put(judgedName, data)
}

// Judged is what KeepJudged kept; nil without it.
func (j *Journal) Judged() (judged map[string]bool, err error) {
	data, err := j.storage.Get(judgedName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &judged)
	}
	return judged, err
}

// missedName is the file with what the run before has missed.
const missedName = "missed"

// Missed keeps on which file of the dataset a run has ended, because the store does not show it. It reports
// whether the run before ended on the same one. A journal that cannot be written to does not know that.
func (j *Journal) Missed(file string) (again bool) {
	before, err := j.storage.Get(missedName)
	if err != nil || string(before) != file {
		_ = j.storage.Put(missedName, []byte(file))
		return false
	}
	return true
}

// listsName begins the names of the files of the suppression lists; their
// fingerprint and the number of the piece follow.
const listsName = "suppressed-"

func listsOf(fingerprint string) string { return listsName + fingerprint + "-" }

func listsPiece(fingerprint string, piece int) string {
	return fmt.Sprintf("%s%05d", listsOf(fingerprint), piece)
}

// KeepLists keeps what the suppression lists of a job hold, as encode writes it. Those
// that were kept before stay until DropLists: the header says which count.
func (j *Journal) KeepLists(fingerprint string, encode func(io.Writer) error) error {
	w := pieceWriter{put: func(piece int, data []byte) error {
		return j.storage.Put(listsPiece(fingerprint, piece), data)
	}}
	if err := encode(&w); err != nil {
		return err
	}
	return w.flush()
}

// DropLists removes lists other than those of a fingerprint.
func (j *Journal) DropLists(keep string) error { return j.storage.Drop(listsName, listsOf(keep)) }

// Lists reads what KeepLists kept under a fingerprint; nil without it.
func (j *Journal) Lists(fingerprint string) (io.Reader, error) {
	r := &pieceReader{get: func(piece int) ([]byte, error) { return j.storage.Get(listsPiece(fingerprint, piece)) }}
	if err := r.fill(); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return r, nil
}

// Begun reports whether this process has begun the journal.
func (j *Journal) Begun() bool { return j.begun }

// String names the journal for messages.
func (j *Journal) String() string { return j.storage.String() }

// Close keeps the journal for the next run.
func (j *Journal) Close() error { return j.storage.Close() }

// Remove ends the journal: its dataset is finished.
func (j *Journal) Remove() error { return j.storage.Remove() }
