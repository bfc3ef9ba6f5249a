// Package atomicfile replaces files as a whole: after a crash there is either
// the old content or the new. It writes a temporary file in the same folder,
// syncs it, renames it, and syncs the folder.
//
// The temporary name is derived from the final one, so the next attempt
// overwrites what a killed process left behind.
package atomicfile

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/leadetl/leadetl/internal/disk"
)

const tempSuffix = ".tmp"

// File is a file that is being written. It is not safe for concurrent use, and
// no two Files may have the same path at the same time.
type File struct {
	disk.File
	in    disk.Folder
	name  string
	size  int64 // of what Write has written
	ended bool
}

// Create starts the file that Commit will put at path. Its folder must exist.
func Create(path string, perm fs.FileMode) (*File, error) {
	return CreateIn(disk.Dir(filepath.Dir(path)), filepath.Base(path), perm)
}

// CreateIn is Create of a file in a folder.
func CreateIn(in disk.Folder, name string, perm fs.FileMode) (*File, error) {
	f, err := in.Create(TempName(name), perm)
	if err != nil {
		return nil, err
	}
	return &File{File: f, in: in, name: name}, nil
}

// Write adds to the end of what it has written before.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.size)
	f.size += int64(n)
	return n, err
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
	f.ended = true
	err := errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = f.in.Rename(TempName(f.name), f.name)
	}
	if err != nil {
		return errors.Join(err, f.in.Remove(TempName(f.name)))
	}
	return f.in.Sync()
}

// Abort deletes the file. After Commit or Abort it does nothing.
func (f *File) Abort() error {
	if f.ended {
		return nil
	}
	f.ended = true
	return errors.Join(f.Close(), f.in.Remove(TempName(f.name)))
}

// Write puts data at path in one durable step.
func Write(path string, data []byte) error {
	return WriteIn(disk.Dir(filepath.Dir(path)), filepath.Base(path), data)
}

// WriteIn is Write of a file in a folder.
func WriteIn(in disk.Folder, name string, data []byte) error {
	f, err := CreateIn(in, name, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}
