// Package atomicfile replaces files as a whole: after a crash there is either
// the old content or the new. It writes a temporary file in the same folder,
// syncs it, renames it, and syncs the folder. It also makes durable folders.
//
// The temporary name is derived from the final one, so the next attempt
// overwrites what a killed process left behind.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const tempSuffix = ".tmp"

// File is a file that is being written. It is not safe for concurrent use, and
// no two Files may have the same path at the same time.
type File struct {
	*os.File
	path string
}

// Create starts the file that Commit will put at path. Its folder must exist.
func Create(path string) (*File, error) {
	f, err := os.OpenFile(TempName(path), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
}

// TempName is the name a file carries until it is committed: hidden, so that
// readers of the folder (Spark, Athena, globs) do not see it.
func TempName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+tempSuffix)
}

// IsTemp reports whether name, without folder, is one TempName gives.
func IsTemp(name string) bool {
	return len(name) > len(tempSuffix)+1 && name[0] == '.' && filepath.Ext(name) == tempSuffix
}

// FinalName is the inverse of TempName: the name, without folder, that a file
// with this temporary name gets.
func FinalName(temp string) string { return temp[1 : len(temp)-len(tempSuffix)] }

// Commit makes the file durable and visible under its final name. On error the
// old file, if any, is untouched, with one exception: if the last step, the
// fsync of the folder, fails, the new file already has the name. After a power
// cut either file may be there; it is complete in any case.
func (f *File) Commit() error {
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Abort())
	}
	if err := f.Close(); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(f.path))
}

// Abort deletes the file. After Commit it does nothing.
func (f *File) Abort() error {
	if err := f.Close(); errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return os.Remove(f.Name())
}

// Write puts data at path in one durable step.
func Write(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}

// SyncDir makes creations, renames and removals in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
