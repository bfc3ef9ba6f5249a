package appendlog

import (
	"os"
	"path/filepath"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Folder is where logs are kept, by their names. What was created or removed in it may be
// undone by a crash until Sync returns.
type Folder interface {
	// Create makes an empty log that only its owner can read. It replaces an existing one.
	Create(name string) (*Log, error)
	// ReadFile returns a log's file; fs.ErrNotExist without it.
	ReadFile(name string) ([]byte, error)
	// Names lists what is in the folder, in order.
	Names() ([]string, error)
	Remove(name string) error
	Sync() error
}

// Dir is the Folder at a path of the file system.
type Dir string

var _ Folder = Dir("")

// Create is that of Folder.
func (d Dir) Create(name string) (*Log, error) {
	f, err := os.OpenFile(d.path(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return New(File{f}), nil
}

// ReadFile is that of Folder.
func (d Dir) ReadFile(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

// Names is that of Folder.
func (d Dir) Names() (names []string, err error) {
	files, err := os.ReadDir(string(d))
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names, err
}

// Remove is that of Folder.
func (d Dir) Remove(name string) error { return os.Remove(d.path(name)) }

// Sync is that of Folder.
func (d Dir) Sync() error { return atomicfile.SyncDir(string(d)) }

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }
