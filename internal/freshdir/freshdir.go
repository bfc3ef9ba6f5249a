// Package freshdir makes folders that go again when nothing came of what they
// were made for.
package freshdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Made are the folders one Make made, the innermost first.
type Made []string

// Make is os.MkdirAll that remembers which folders were not there before, and
// makes their entries durable: files fsynced into a folder that a power cut
// takes away would be lost with it. On error nothing new stays.
func Make(dir string, perm fs.FileMode) (Made, error) {
	return makeWith(atomicfile.SyncDir, dir, perm)
}

func makeWith(syncDir func(dir string) error, dir string, perm fs.FileMode) (Made, error) {
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

// missing lists dir and the folders above it that are not there.
func missing(dir string) (folders Made) {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return folders
		}
		folders = append(folders, dir)
		dir = filepath.Dir(dir)
	}
}

// RemoveEmpty removes the folders again, up to the first that is in use.
func (m Made) RemoveEmpty() {
	for _, folder := range m {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
