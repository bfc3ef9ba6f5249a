package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
)

// Folder is a Storage in a folder on a disk.
type Folder struct {
	In   disk.Folder
	file disk.File // after Begin
	size int64
}

// NewFolder names the folder of the dataset at out, in a state folder; it
// touches nothing.
func NewFolder(stateDir, out string) (*Folder, error) {
	name, err := DatasetName(out)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(name))
	return &Folder{In: disk.Dir(filepath.Join(stateDir, "runs", hex.EncodeToString(sum[:8])))}, nil
}

// DatasetName is what tells a dataset from others: the URI of one on S3, else
// the absolute path.
func DatasetName(out string) (string, error) {
	if objects.Is(out) {
		return out, nil
	}
	return filepath.Abs(out)
}

const linesName = "journal.jsonl"

// String is the path of the journal.
func (f *Folder) String() string { return f.In.Path(linesName) }

// Read is Storage's.
func (f *Folder) Read() ([]byte, error) { return f.In.ReadFile(linesName) }

// Begin is Storage's.
func (f *Folder) Begin(lines []byte) error {
	err := f.In.Make()
	if err == nil {
		err = atomicfile.WriteIn(f.In, linesName, lines)
	}
	if err == nil {
		f.file, err = f.In.Open(linesName)
		f.size = int64(len(lines))
	}
	return err
}

// Append is Storage's.
func (f *Folder) Append(lines []byte) error {
	if _, err := f.file.WriteAt(lines, f.size); err != nil {
		return err
	}
	f.size += int64(len(lines))
	return f.file.Sync()
}

// Put is Storage's.
func (f *Folder) Put(name string, data []byte) error {
	if f.file == nil {
		if err := f.In.Make(); err != nil {
			return err
		}
	}
	return atomicfile.WriteIn(f.In, name, data)
}

// Get is Storage's.
func (f *Folder) Get(name string) ([]byte, error) { return f.In.ReadFile(name) }

// Drop is Storage's.
func (f *Folder) Drop(prefix, keep string) error {
	names, err := f.In.Names()
	errs := []error{err}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, keep) {
			errs = append(errs, f.In.Remove(name))
		}
	}
	return errors.Join(errs...)
}

// Remove is Storage's.
func (f *Folder) Remove() error { return f.In.RemoveAll() }

// Close is Storage's.
func (f *Folder) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
