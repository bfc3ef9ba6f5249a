package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/lease"
)

// Dir is the Folder at a path of the file system.
type Dir string

var _ Folder = Dir("")

// At is the Folder at a path of the file system.
func At(path string) Folder { return Dir(path) }

// In is that of Folder.
func (d Dir) In(name string) Folder { return Dir(d.Path(name)) }

// Above is that of Folder. It follows links.
func (d Dir) Above() (Folder, error) {
	path, err := filepath.Abs(string(d))
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	above := filepath.Dir(path)
	if err != nil || above == path {
		return nil, err
	}
	return Dir(above), nil
}

// Make is that of Folder. One folder after the other is made and synced, so that after a kill only
// the innermost that is there may not be durable: it is synced first.
func (d Dir) Make(perm fs.FileMode) (Made, error) { return d.make(perm, Dir.Sync) }

func (d Dir) make(perm fs.FileMode, sync func(Dir) error) (Made, error) {
	made := d.missing()
	there := d
	if len(made) > 0 {
		there = made[len(made)-1].(Dir).parent()
	}
	err := os.MkdirAll(string(there), perm)
	if err == nil && there.parent() != there {
		if err = sync(there.parent()); errors.Is(err, fs.ErrPermission) {
			err = nil // who may not list the folder above did not make this one
		}
	}
	for _, folder := range slices.Backward(made) {
		if err == nil {
			err = os.MkdirAll(folder.Path("."), perm)
		}
		if err == nil {
			err = sync(folder.(Dir).parent())
		}
	}
	if err != nil {
		made.RemoveEmpty()
		return nil, err
	}
	return made, nil
}

// missing lists the folder and those above it that do not exist.
func (d Dir) missing() (folders Made) {
	for {
		if _, err := os.Lstat(string(d)); !errors.Is(err, fs.ErrNotExist) {
			return folders
		}
		folders = append(folders, d)
		d = d.parent()
	}
}

func (d Dir) parent() Dir { return Dir(filepath.Dir(string(d))) }

// Lock is that of Folder.
func (d Dir) Lock() (lease.Lease, error) {
	lock, err := filelock.Folder(string(d))
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// Create is that of Folder.
func (d Dir) Create(name string, perm fs.FileMode) (File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, perm)
}

// Open is that of Folder.
func (d Dir) Open(name string) (File, error) { return d.open(name, os.O_RDONLY, 0) }

func (d Dir) open(name string, flags int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(d.Path(name), flags, perm)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// ReadFile is that of Folder.
func (d Dir) ReadFile(name string) ([]byte, error) { return os.ReadFile(d.Path(name)) }

// ReadDir is that of Folder.
func (d Dir) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(d.Path(name)) }

// Stat is that of Folder.
func (d Dir) Stat(name string) (fs.FileInfo, error) { return os.Stat(d.Path(name)) }

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
func (d Dir) Path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }
