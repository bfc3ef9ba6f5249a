package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/objects"
)

// Folder is a Storage in a folder on a disk.
type Folder struct {
	In   disk.Folder
	mark format.Mark    // of the state; without Get there is none
	log  *appendlog.Log // after Begin
}

// NewFolder names the folder of the dataset at out, in the folder of a state; it
// touches nothing.
func NewFolder(state disk.Folder, out string) (*Folder, error) {
	name, err := DatasetName(out)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(name))
	return &Folder{In: state.In("runs").In(hex.EncodeToString(sum[:8])), mark: StateMark(state)}, nil
}

// DatasetName is what tells a dataset from others: the URI of one on S3, else
// the absolute path.
func DatasetName(out string) (string, error) {
	if objects.Is(out) {
		return out, nil
	}
	return filepath.Abs(out)
}

const logName = "journal.log"

// String is the path of the journal.
func (f *Folder) String() string { return f.In.Path(logName) }

// Read is Storage's.
func (f *Folder) Read() (lines []byte, err error) {
	_, err = appendlog.Read(f.In, logName, appendlog.First, true, func(group []byte) error {
		lines = append(lines, group...)
		return nil
	})
	if err == nil && len(lines) == 0 {
		err = &appendlog.Damage{File: f.String(), What: "its first record is not whole"}
	}
	return lines, err
}

// Begin is Storage's.
func (f *Folder) Begin(lines []byte) error {
	if err := f.make(); err != nil {
		return err
	}
	temp := atomicfile.TempName(logName)
	log, err := appendlog.Create(f.In, temp, appendlog.First)
	if err != nil {
		return err
	}
	if err = log.Append(lines); err == nil {
		err = f.In.Rename(temp, logName)
	}
	if err == nil {
		err = f.In.Sync()
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	f.log = log
	return nil
}

// make makes the folder, in a state that is marked.
func (f *Folder) make() error {
	if f.mark.Get != nil {
		if err := f.mark.Begin(); err != nil {
			return err
		}
	}
	_, err := f.In.Make(0o700)
	return err
}

// Append is Storage's.
func (f *Folder) Append(lines []byte) error { return f.log.Append(lines) }

// Put is Storage's.
func (f *Folder) Put(name string, data []byte) error {
	if f.log == nil {
		if err := f.make(); err != nil {
			return err
		}
	}
	sealed, err := appendlog.Seal(name, data)
	if err != nil {
		return err
	}
	return atomicfile.WriteIn(f.In, name, sealed)
}

// Get is Storage's.
func (f *Folder) Get(name string) ([]byte, error) {
	sealed, err := f.In.ReadFile(name)
	if err != nil {
		return nil, err
	}
	data, err := appendlog.Unseal(name, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.In.Path(name), err)
	}
	return data, nil
}

// Drop is Storage's.
func (f *Folder) Drop(prefix, keep string) error {
	names, err := disk.Names(f.In)
	errs := []error{err}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, keep) {
			errs = append(errs, f.In.Remove(name))
		}
	}
	if len(errs) > 1 {
		errs = append(errs, f.In.Sync())
	}
	return errors.Join(errs...)
}

// Remove is Storage's.
func (f *Folder) Remove() error {
	return f.In.RemoveAll()
}

// Close is Storage's.
func (f *Folder) Close() error {
	if f.log == nil {
		return nil
	}
	return f.log.Close()
}
