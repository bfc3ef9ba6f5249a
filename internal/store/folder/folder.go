// Package folder is the store in a folder on a disk.
package folder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/internal/store"
)

// Folder is a store.Store. It makes the folder with the first file.
type Folder struct {
	in         disk.Folder
	file, dirs fs.FileMode
	// Large says that files directly in the folder are large, and not read soon.
	Large bool
	// SumLater leaves the checksums of large files to who reads several of them together.
	SumLater bool
	// below is held while folders are made or removed, so that none is removed
	// between its making and its first file.
	below    longlock.Lock
	creating longlock.Lock
	durable  map[string]bool // folders that are there also after a power cut
}

var _ store.Store = (*Folder)(nil)

// Public is the store in a folder that others may read.
func Public(in disk.Folder) *Folder { return open(in, 0o644, 0o755) }

// Private is the store in a folder that its owner alone may read.
func Private(in disk.Folder) *Folder { return open(in, 0o600, 0o700) }

func open(in disk.Folder, file, dirs fs.FileMode) *Folder {
	return &Folder{in: in, file: file, dirs: dirs, below: longlock.New(), creating: longlock.New(), durable: map[string]bool{}}
}

// String is that of store.Store.
func (f *Folder) String() string { return f.in.Path(".") }

// Path is that of store.Store.
func (f *Folder) Path(name string) string { return f.in.Path(name) }

// Above is the store in the folder that has this one; nil for the root of the disk.
func (f *Folder) Above() (store.Store, error) {
	above, err := f.in.Above()
	if above == nil || err != nil {
		return nil, err
	}
	return open(above, f.file, f.dirs), nil
}

// Create is that of store.Store. The lease keeps other processes away.
func (f *Folder) Create(ctx context.Context, name string, data []byte) error {
	f.creating.Lock()
	defer f.creating.Unlock()
	switch is, err := f.Read(ctx, name); {
	case err == nil && !bytes.Equal(is, data):
		return fmt.Errorf("create %s: %w", f.Path(name), fs.ErrExist)
	case err != nil && !store.IsMissing(err):
		return err
	}
	return f.Put(ctx, name, data)
}

// Put is that of store.Store.
func (f *Folder) Put(_ context.Context, name string, data []byte) error {
	file, err := f.start(name)
	if err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return errors.Join(err, file.Abort())
	}
	return file.Commit()
}

// start starts a file, in a folder that it makes if it is missing.
func (f *Folder) start(name string) (*atomicfile.File, error) {
	f.below.Lock()
	defer f.below.Unlock()
	in, base := path.Split(name)
	in = path.Clean(in)
	for tries := 1; ; tries++ { // another process may remove the empty folder
		if err := f.makeFolder(in); err != nil {
			return nil, err
		}
		file, err := atomicfile.CreateIn(f.in.In(in), base, f.file)
		if err == nil || !store.IsMissing(err) || tries == 3 {
			return file, err
		}
		delete(f.durable, in)
	}
}

// makeFolder makes a folder if it is missing. On a disk that ignores case, it refuses a
// folder with another spelling, because two files would be one.
func (f *Folder) makeFolder(name string) error {
	if f.durable[name] {
		return nil
	}
	made, err := f.in.In(name).Make(f.dirs)
	if err != nil {
		return err
	}
	if len(made) == 0 && name != "." {
		names, err := disk.Names(f.in.In(path.Dir(name)))
		if err != nil {
			return err
		}
		if !slices.Contains(names, path.Base(name)) {
			return fmt.Errorf("%s: this disk ignores case, so this folder and another one would be the same; write to another disk, or partition by another column", f.Path(name))
		}
	}
	f.durable[name] = true
	return nil
}

// Read is that of store.Store.
func (f *Folder) Read(_ context.Context, name string) ([]byte, error) {
	data, err := f.in.ReadFile(name)
	return data, noFolder(err)
}

// noFolder turns the error that a file is in the place of the folder into
// fs.ErrNotExist.
func noFolder(err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

// Open is that of store.Store.
func (f *Folder) Open(_ context.Context, name string) (*store.Object, error) {
	file, err := f.in.Open(name)
	if err != nil {
		return nil, noFolder(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &store.Object{ReaderAt: file, Closer: file, Info: infoOf(name, info)}, nil
}

func infoOf(name string, info fs.FileInfo) store.Info {
	return store.Info{Name: name, Size: info.Size(), ModTime: info.ModTime().UTC(), Special: !info.Mode().IsRegular()}
}

// Check is that of store.Store.
func (f *Folder) Check(ctx context.Context, file store.File, _ store.Info) error {
	info, err := f.in.Stat(file.Name)
	if err != nil || file.Same(infoOf(file.Name, info)) {
		return noFolder(err)
	}
	o, err := f.Open(ctx, file.Name)
	if err != nil {
		return err
	}
	return errors.Join(file.CheckObject(o), o.Close())
}

// List is that of store.Store.
func (f *Folder) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	from, _ := path.Split(prefix)
	return func(yield func(store.Info, error) bool) {
		if err := f.list(ctx, from, prefix, yield); err != nil && (prefix == "" || !store.IsMissing(err)) && !errors.Is(err, fs.SkipAll) {
			yield(store.Info{}, err)
		}
	}
}

// list yields what is in a folder and below; fs.SkipAll if yield wants no more.
func (f *Folder) list(ctx context.Context, folder, prefix string, yield func(store.Info, error) bool) error {
	entries, err := f.Entries(ctx, folder)
	if err != nil {
		return err
	}
	for _, info := range entries {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !strings.HasPrefix(info.Name, prefix) && !(info.IsFolder() && strings.HasPrefix(prefix, info.Name)):
		case info.IsFolder():
			if err := f.list(ctx, info.Name, prefix, yield); err != nil && !store.IsMissing(err) {
				return err
			}
		case !yield(info, nil):
			return fs.SkipAll
		}
	}
	return nil
}

// Entries is that of store.Store. A file that another process removes meanwhile is not in the list.
func (f *Folder) Entries(_ context.Context, folder string) (infos []store.Info, err error) {
	entries, err := f.in.ReadDir(cmp.Or(strings.TrimSuffix(folder, "/"), "."))
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		if e.IsDir() {
			infos = append(infos, store.Info{Name: name + "/"})
			continue
		}
		switch info, err := e.Info(); {
		case err == nil:
			infos = append(infos, infoOf(name, info))
		case !store.IsMissing(err):
			return nil, err
		}
	}
	slices.SortFunc(infos, func(a, b store.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, noFolder(err)
}

// Remove is that of store.Store.
func (f *Folder) Remove(_ context.Context, names ...string) error {
	folders := map[string]bool{}
	for _, name := range names {
		if err := f.in.Remove(name); err != nil && !store.IsMissing(err) {
			return err
		}
		folders[folderOf(name)] = true
	}
	for len(folders) > 0 {
		last := slices.Max(slices.Collect(maps.Keys(folders))) // what is below comes first
		delete(folders, last)
		removed, err := f.tidy(last)
		if err != nil {
			return err
		}
		if removed {
			folders[folderOf(last)] = true
		}
	}
	return nil
}

// folderOf is the folder of a name; "" is the store itself.
func folderOf(name string) string { return strings.TrimPrefix(path.Dir(name), ".") }

// tidy removes a folder if it is empty, and else makes durable what was removed in it.
func (f *Folder) tidy(name string) (removed bool, err error) {
	f.below.Lock()
	defer f.below.Unlock()
	in := f.in.In(cmp.Or(name, "."))
	if name != "" {
		if err := in.Remove("."); err == nil || store.IsMissing(err) {
			delete(f.durable, name)
			return true, nil
		}
	}
	if err = in.Sync(); name == "" && store.IsMissing(err) {
		err = nil // there is no store, and so no file
	}
	return false, err
}

// held is the lock of a folder that was made for it.
type held struct {
	lease.Lease
	made disk.Made
}

// Release is that of lease.Lease. It removes a folder that was made and not used.
func (h held) Release() error {
	h.made.RemoveEmpty()
	return h.Lease.Release()
}

// Lease is that of store.Store: a lock of the folder. A process that was killed may have renamed what its successor
// sees, and not synced the folder.
func (f *Folder) Lease(_ context.Context, folder string, _ store.Holder) (lease.Lease, error) {
	in := f.in.In(cmp.Or(folder, "."))
	made, err := in.Make(f.dirs)
	if err != nil {
		return nil, err
	}
	l, err := in.Lock()
	if err != nil {
		return nil, err
	}
	if len(made) == 0 {
		if err := in.Sync(); err != nil {
			return nil, errors.Join(err, l.Release())
		}
	}
	if folder == "" {
		f.below.Lock()
		defer f.below.Unlock()
		f.durable["."] = true
	}
	return held{l, made}, nil
}

// Await is that of store.Store: a disk shows all files.
func (f *Folder) Await(_ context.Context, _ string, _ func() (bool, error), read func() error) error {
	return read()
}
