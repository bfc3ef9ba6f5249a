package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// NewFolders are the folders that one MakeFolders created, the innermost first.
type NewFolders []string

// MakeFolders is os.MkdirAll, but it returns which folders it created, and makes
// them durable. Otherwise a power cut could remove a folder with the synced
// files in it. On error it removes what it created.
func MakeFolders(dir string, perm fs.FileMode) (NewFolders, error) {
	return makeFolders(func(dir string) error { return Dir(dir).Sync() }, dir, perm)
}

func makeFolders(syncDir func(dir string) error, dir string, perm fs.FileMode) (NewFolders, error) {
	made := missing(dir)
	err := os.MkdirAll(dir, perm)
	for _, folder := range slices.Backward(made) {
		if err == nil {
			err = syncDir(filepath.Dir(folder))
		}
	}
	if err != nil {
		made.RemoveEmpty()
		return nil, err
	}
	return made, nil
}

// missing lists dir and the folders above it that do not exist.
func missing(dir string) (folders NewFolders) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return folders
		}
		folders = append(folders, dir)
		dir = filepath.Dir(dir)
	}
}

// RemoveEmpty removes the folders, up to the first that is not empty.
func (n NewFolders) RemoveEmpty() {
	for _, folder := range n {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
