package worldtest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/lease"
)

var _ disk.Folder = (*Disk)(nil)

// At is the folder at an absolute path.
func (d *Disk) At(name string) disk.Folder {
	return &Disk{d.tree, strings.TrimPrefix(path.Clean(name), "/")}
}

// In is that of disk.Folder.
func (d *Disk) In(name string) disk.Folder { return &Disk{d.tree, d.name(name)} }

// Above is that of disk.Folder.
func (d *Disk) Above() (disk.Folder, error) {
	if d.folder == "" {
		return nil, nil
	}
	_, err := d.Stat(".")
	return &Disk{d.tree, above(d.folder)}, err
}

// Path is that of disk.Folder.
func (d *Disk) Path(name string) string { return path.Join(d.Name, d.name(name)) }

// name is a name in the folder, from the root.
func (d *Disk) name(name string) string { return fromRoot(path.Join(d.folder, name)) }

// above is the folder of a name.
func above(name string) string { return fromRoot(path.Dir(name)) }

func fromRoot(name string) string {
	if name == "." {
		return ""
	}
	return name
}

// isFolder reports whether a folder is there. The caller holds the lock.
func (t *tree) isFolder(name string) bool {
	if name == "" {
		return !t.Missing
	}
	return t.names[name] != nil && t.names[name].folder
}

// has is an error if a name can be in no folder. The caller holds the lock.
func (t *tree) has(name string) error {
	in := above(name)
	switch {
	case t.isFolder(in):
		return nil
	case t.names[in] != nil:
		return t.failed(name, syscall.ENOTDIR)
	}
	return t.failed(name, fs.ErrNotExist)
}

func (t *tree) failed(name string, err error) error {
	return &fs.PathError{Op: "use", Path: path.Join(t.Name, name), Err: err}
}

// existing is the file or folder of a name that is there. The caller holds the lock.
func (t *tree) existing(name string) (*file, error) {
	if err := t.world.Alive(); err != nil {
		return nil, err
	}
	if name == "" && !t.Missing {
		return &file{folder: true}, nil
	}
	if err := t.has(name); err != nil {
		return nil, err
	}
	if f := t.names[name]; f != nil {
		return f, nil
	}
	return nil, t.failed(name, fs.ErrNotExist)
}

// Make is that of disk.Folder.
func (d *Disk) Make(fs.FileMode) (disk.Made, error) {
	d.mu.Lock()
	var made disk.Made
	there := d
	for !d.isFolder(there.folder) {
		made = append(made, there)
		if there.folder == "" {
			break
		}
		there = &Disk{d.tree, above(there.folder)}
	}
	d.mu.Unlock()
	var err error
	if there.folder != "" {
		err = there.stay()
	}
	for _, folder := range slices.Backward(made) {
		if err == nil {
			err = folder.(*Disk).appear()
		}
		if err == nil {
			err = folder.(*Disk).stay()
		}
	}
	if err != nil {
		made.RemoveEmpty()
		return nil, err
	}
	return made, nil
}

// appear makes the folder, without those above it.
func (d *Disk) appear() error {
	if err := d.operate("make folder"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isFolder(d.folder) {
		return nil
	}
	// That a folder of the name was removed is durable with its successor.
	maps.DeleteFunc(d.durable, func(name string, _ *file) bool {
		return d.folder == "" || strings.HasPrefix(name, d.folder+"/")
	})
	if d.folder == "" {
		d.Missing = false
		return nil
	}
	if err := d.has(d.folder); err != nil {
		return err
	}
	if d.names[d.folder] != nil {
		return d.failed(d.folder, syscall.ENOTDIR)
	}
	d.file(d.folder).folder = true
	return nil
}

// stay makes the name of the folder durable.
func (d *Disk) stay() error {
	if d.folder == "" {
		return nil
	}
	return (&Disk{d.tree, above(d.folder)}).Sync()
}

// Sync is that of disk.Folder.
func (d *Disk) Sync() error {
	if err := d.operate("sync folder"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.existing(d.folder); err != nil {
		return err
	}
	d.sync(d.folder)
	return nil
}

// sync makes durable what is in a folder. The caller holds the lock.
func (t *tree) sync(folder string) {
	maps.DeleteFunc(t.durable, func(name string, _ *file) bool { return above(name) == folder && t.names[name] == nil })
	for name, f := range t.names {
		if above(name) == folder {
			t.durable[name] = f
		}
	}
}

// ReadDir is that of disk.Folder.
func (d *Disk) ReadDir(name string) (entries []fs.DirEntry, err error) {
	in := d.name(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch f, err := d.existing(in); {
	case err != nil:
		return nil, err
	case !f.folder:
		return nil, d.failed(in, syscall.ENOTDIR)
	}
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if above(name) == in {
			entries = append(entries, fs.FileInfoToDirEntry(d.names[name].info(name)))
		}
	}
	return entries, nil
}

// Remove is that of disk.Folder.
func (d *Disk) Remove(name string) error {
	name = d.name(name)
	if err := d.operate("remove " + cmp.Or(name, "folder")); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.existing(name)
	if err != nil {
		return err
	}
	for other := range d.names {
		if f.folder && above(other) == name {
			return d.failed(name, syscall.ENOTEMPTY)
		}
	}
	if name == "" {
		d.Missing = true
	}
	delete(d.names, name)
	delete(d.locks, name) // a folder that takes its name has another
	return nil
}

// RemoveAll is that of disk.Folder. A crash may come between two of its files.
func (d *Disk) RemoveAll() error {
	entries, err := d.ReadDir(".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if err == nil && e.IsDir() {
			err = d.In(e.Name()).RemoveAll()
		} else if err == nil {
			err = d.Remove(e.Name())
		}
	}
	if err != nil {
		return err
	}
	return d.Remove(".")
}

// lock is the lock of a folder. It ends with the life of its machine.
type lock struct {
	lease.All // of nothing
	in        *Disk
	life      int
}

// Lock is that of disk.Folder.
func (d *Disk) Lock() (lease.Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.existing(d.folder); err != nil {
		return nil, err
	}
	if held := d.locks[d.folder]; held != nil && held.life == d.world.life {
		return nil, fmt.Errorf("%s: %w", d.Path("."), filelock.ErrLocked)
	}
	l := &lock{in: d, life: d.world.life}
	d.locks[d.folder] = l
	return l, nil
}

// Release is that of lease.Lease.
func (l *lock) Release() error {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	if l.in.locks[l.in.folder] == l {
		delete(l.in.locks, l.in.folder)
	}
	return l.in.world.Alive()
}
