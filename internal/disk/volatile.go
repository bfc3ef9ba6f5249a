package disk

import "io/fs"

// Volatile is the Folder at a path for what nobody needs after a crash: its Sync, and those of its
// files, do nothing.
func Volatile(path string) Folder { return volatile{Dir(path)} }

type volatile struct{ Dir }

// Sync is that of Folder.
func (v volatile) Sync() error { return nil }

// Make is that of Folder.
func (v volatile) Make(perm fs.FileMode) (Made, error) {
	return v.make(perm, func(Dir) error { return nil })
}

// In is that of Folder.
func (v volatile) In(name string) Folder { return volatile{Dir(v.Path(name))} }

// Create is that of Folder.
func (v volatile) Create(name string, perm fs.FileMode) (File, error) {
	f, err := v.Dir.Create(name, perm)
	if err != nil {
		return nil, err
	}
	return unsynced{f}, nil
}

type unsynced struct{ File }

// Sync is that of File.
func (unsynced) Sync() error { return nil }
