package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is the Folder at a path of the file system.
type Dir string

var _ Folder = Dir("")

// Make is that of Folder. It also syncs the folder above one that is there: the process that
// made it may have been killed before it did.
func (d Dir) Make() error {
	if _, err := MakeFolders(string(d), 0o700); err != nil {
		return err
	}
	return Dir(filepath.Dir(string(d))).Sync()
}

// Create is that of Folder.
func (d Dir) Create(name string, perm fs.FileMode) (File, error) {
	return d.open(name, os.O_CREATE|os.O_TRUNC, perm)
}

// Open is that of Folder.
func (d Dir) Open(name string) (File, error) { return d.open(name, 0, 0) }

func (d Dir) open(name string, flags int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(d.Path(name), os.O_WRONLY|flags, perm)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// ReadFile is that of Folder.
func (d Dir) ReadFile(name string) ([]byte, error) { return os.ReadFile(d.Path(name)) }

// Names is that of Folder.
func (d Dir) Names() (names []string, err error) {
	files, err := os.ReadDir(string(d))
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names, err
}

// Rename is that of Folder.
func (d Dir) Rename(from, to string) error { return os.Rename(d.Path(from), d.Path(to)) }

// Remove is that of Folder.
func (d Dir) Remove(name string) error { return os.Remove(d.Path(name)) }

// RemoveAll is that of Folder.
func (d Dir) RemoveAll() error { return os.RemoveAll(string(d)) }

// Sync is that of Folder.
func (d Dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Path is that of Folder.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }
