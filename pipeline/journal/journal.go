// Package journal keeps the durable progress of unfinished datasets. A part that
// is not in the journal of its dataset does not count.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Journal is the durable progress of one unfinished dataset: a line for the
// job, then a line a recorded part, each on disk before it counts. It lives
// in the state folder, under a name made from the dataset's, and is removed
// when the dataset is finished.
type Journal struct {
	dir    string
	mu     sync.Mutex
	file   *os.File
	failed error // of a write that may have left half a line: nothing may follow it
}

// Header is what a journal says of its job.
type Header struct {
	JobID string `json:"job_id"`
	// Job is the identity whose hash JobID is, to say what another job changes.
	Job json.RawMessage `json:"job,omitempty"`
	// Run names the work on the dataset from its first process to the one that
	// finishes it, and BegunAt is when that was.
	Run     string        `json:"run"`
	BegunAt time.Time     `json:"begun_at"`
	AsOf    string        `json:"as_of,omitempty"` // the day that searches take for today
	Out     string        `json:"out"`
	Inputs  []sinks.Input `json:"inputs"` // as they were when the job was begun
}

type part struct {
	Number int        `json:"number"`
	Part   sinks.Part `json:"part"`
}

// New names the journal of the dataset at out; it touches nothing.
func New(stateDir, out string) (*Journal, error) {
	name := out // of one on S3 its URI
	if !objects.Is(out) {
		abs, err := filepath.Abs(out)
		if err != nil {
			return nil, err
		}
		name = abs
	}
	sum := sha256.Sum256([]byte(name))
	return &Journal{dir: filepath.Join(stateDir, "runs", hex.EncodeToString(sum[:8]))}, nil
}

func (j *Journal) path() string { return filepath.Join(j.dir, "journal.jsonl") }

// Read returns the recorded parts by number and the job they are of; no
// journal gives a zero header. A line that a crash or a power cut left
// damaged never counted: reading ends there, and what came after it is made
// again.
func (j *Journal) Read() (header Header, parts map[int]sinks.Part, err error) {
	data, err := os.ReadFile(j.path())
	if errors.Is(err, fs.ErrNotExist) {
		return header, nil, nil
	}
	if err != nil {
		return header, nil, err
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if err := json.Unmarshal(lines[0], &header); err != nil {
		return header, nil, fmt.Errorf("%s: %w; remove it to begin again", j.path(), err)
	}
	parts = map[int]sinks.Part{}
	for _, line := range lines[1:] {
		var p part
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &p) != nil {
			break
		}
		parts[p.Number] = p.Part
	}
	return header, parts, nil
}

// Begin replaces the journal by one that holds parts and takes more.
func (j *Journal) Begin(header Header, parts map[int]sinks.Part) error {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	if err := encoder.Encode(header); err != nil {
		return err
	}
	for number, p := range parts {
		if err := encoder.Encode(part{number, p}); err != nil {
			return err
		}
	}
	if err := atomicfile.Write(j.path(), lines.Bytes()); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(filepath.Dir(j.dir)); err != nil {
		return err
	}
	f, err := os.OpenFile(j.path(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	j.file = f
	return nil
}

// Record makes a part count. It is safe from several goroutines.
func (j *Journal) Record(number int, p sinks.Part) error {
	line, err := json.Marshal(part{number, p})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	if _, j.failed = j.file.Write(append(line, '\n')); j.failed == nil {
		j.failed = j.file.Sync()
	}
	return j.failed
}

func (j *Journal) foundPath(number int) string {
	return filepath.Join(j.dir, fmt.Sprintf("found-%05d", number))
}

// KeepFound keeps which entries of suppression lists a part has found. It is on
// disk when it returns.
func (j *Journal) KeepFound(number int, found suppression.Found) error {
	return atomicfile.Write(j.foundPath(number), found.Encode())
}

// Found is what KeepFound kept.
func (j *Journal) Found(number int) (suppression.Found, error) {
	data, err := os.ReadFile(j.foundPath(number))
	if err != nil {
		return nil, err
	}
	return suppression.DecodeFound(data)
}

// listsName begins the name of the file of the suppression lists; their
// fingerprint follows.
const listsName = "suppressed-"

// KeepLists keeps what the suppression lists of a job hold. Those that were kept
// before stay until DropLists: the header says which count.
func (j *Journal) KeepLists(fingerprint string, encoded []byte) error {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(j.dir, listsName+fingerprint), encoded)
}

// DropLists removes lists other than those of a fingerprint.
func (j *Journal) DropLists(but string) error {
	files, err := os.ReadDir(j.dir)
	errs := []error{err}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), listsName) && f.Name() != listsName+but {
			errs = append(errs, os.Remove(filepath.Join(j.dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}

// Lists is what KeepLists kept under a fingerprint; nil without it.
func (j *Journal) Lists(fingerprint string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(j.dir, listsName+fingerprint))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Begun reports whether this process has begun the journal.
func (j *Journal) Begun() bool { return j.file != nil }

// Close keeps the journal for the next run.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// Remove ends the journal: its dataset is finished.
func (j *Journal) Remove() error { return os.RemoveAll(j.dir) }
