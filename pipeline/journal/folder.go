package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/objects"
)

// Folder is a Storage on this disk.
type Folder struct {
	dir  string
	file *os.File
}

// NewFolder names the folder of the dataset at out, in a state folder; it
// touches nothing.
func NewFolder(stateDir, out string) (*Folder, error) {
	name, err := DatasetName(out)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(name))
	return &Folder{dir: filepath.Join(stateDir, "runs", hex.EncodeToString(sum[:8]))}, nil
}

// DatasetName is what tells a dataset from others: the URI of one on S3, else
// the absolute path.
func DatasetName(out string) (string, error) {
	if objects.Is(out) {
		return out, nil
	}
	return filepath.Abs(out)
}

// String is the path of the journal.
func (f *Folder) String() string { return filepath.Join(f.dir, "journal.jsonl") }

// Read is Storage's.
func (f *Folder) Read() ([]byte, error) { return os.ReadFile(f.String()) }

// Begin is Storage's.
func (f *Folder) Begin(lines []byte) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(f.String(), lines); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(filepath.Dir(f.dir)); err != nil {
		return err
	}
	file, err := os.OpenFile(f.String(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	f.file = file
	return nil
}

// Append is Storage's.
func (f *Folder) Append(lines []byte) error {
	if _, err := f.file.Write(lines); err != nil {
		return err
	}
	return f.file.Sync()
}

// Put is Storage's.
func (f *Folder) Put(name string, data []byte) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(f.dir, name), data)
}

// Get is Storage's.
func (f *Folder) Get(name string) ([]byte, error) { return os.ReadFile(filepath.Join(f.dir, name)) }

// Drop is Storage's.
func (f *Folder) Drop(prefix, keep string) error {
	files, err := os.ReadDir(f.dir)
	errs := []error{err}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), prefix) && !strings.HasPrefix(file.Name(), keep) {
			errs = append(errs, os.Remove(filepath.Join(f.dir, file.Name())))
		}
	}
	return errors.Join(errs...)
}

// Remove is Storage's.
func (f *Folder) Remove() error { return os.RemoveAll(f.dir) }

// Close is Storage's.
func (f *Folder) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
