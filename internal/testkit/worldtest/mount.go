package worldtest

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Mount makes the files of SQLite below a folder files of the disk, with what is in them.
// SQLite reads the folder, where each change is made after it was made on the disk: a change
// that fails there is not made, nor is any after the crash. Remount brings into the folder
// what survives. free ends it.
func (d *Disk) Mount(dir string) (free func(), err error) {
	mounts.once.Do(register)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if text, read := os.ReadFile(filepath.Join(dir, e.Name())); read == nil {
			f := d.file(d.name(e.Name()))
			f.text, f.disk = text, slices.Clone(text)
			d.durable[d.name(e.Name())] = f
		} else {
			err = errors.Join(err, read)
		}
	}
	mounts.Lock()
	defer mounts.Unlock()
	mounts.disks[dir+"/"] = d
	return func() {
		mounts.Lock()
		defer mounts.Unlock()
		delete(mounts.disks, dir+"/")
	}, err
}

// Remount is Restart that brings into the folder what is on the disk then. No file may be open.
func (d *Disk) Remount(dir string, powerCut bool) error {
	d.Restart(powerCut)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
	}
	for name, f := range d.names {
		if above(name) == d.folder && !f.folder {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, path.Base(name)), f.text, 0o600))
		}
	}
	return err
}

// mounts are the disks by their folders, and the files that SQLite has open on them.
var mounts = struct {
	sync.Mutex
	once  sync.Once
	disks map[string]*Disk
	open  map[uintptr]*openFile
	ours  map[uintptr]uintptr // methods of a file, by those that the machine has; SQLite's memory
}{disks: map[string]*Disk{}, open: map[uintptr]*openFile{}, ours: map[uintptr]uintptr{}}

// openFile is a file of a disk that SQLite has open, with the methods of the file in the folder.
type openFile struct {
	handle
	system *sqlite3.Tsqlite3_io_methods
	named  bool // the folder was synced, or needs not be
}

// open opens a file, which it makes if there is none.
func (d *Disk) open(name string) (handle, error) {
	name = d.name(name)
	d.mu.Lock()
	f := d.names[name]
	d.mu.Unlock()
	if f == nil {
		if err := d.operate("create " + name); err != nil {
			return handle{}, err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		f = d.file(name)
	}
	return d.handle(f, name), d.world.Alive()
}

// find returns the disk of a path and the name there; nil for another file.
func find(path string) (d *Disk, name string) {
	mounts.Lock()
	defer mounts.Unlock()
	for dir, d := range mounts.disks {
		if name, is := strings.CutPrefix(path, dir); is {
			return d, name
		}
	}
	return nil, ""
}

// opened is a file that SQLite has open.
func opened(id uintptr) *openFile {
	mounts.Lock()
	defer mounts.Unlock()
	return mounts.open[id]
}

// The system of files that SQLite uses: that of the machine, and ours, which does the same on a
// disk first.
var (
	system    uintptr
	ourName   = [...]byte{'d', 'i', 's', 'k', 0}
	ourSystem sqlite3.Tsqlite3_vfs
)

// register makes ours the system of files of all databases that are opened from now on.
func register() {
	tls := libc.NewTLS()
	system = sqlite3.Xsqlite3_vfs_find(tls, 0)
	ourSystem = *at[sqlite3.Tsqlite3_vfs](system)
	ourSystem.FxOpen, ourSystem.FxDelete, ourSystem.FxSleep = pointer(openOn), pointer(deleteFile), pointer(sleep)
	ourSystem.FzName = uintptr(unsafe.Pointer(&ourName))
	if code := sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&ourSystem)), 1); code != sqlite3.SQLITE_OK {
		panic("worldtest: SQLite does not take another system of files")
	}
}

func openOn(tls *libc.TLS, _, path, id uintptr, flags int32, got uintptr) int32 {
	code := call[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](at[sqlite3.Tsqlite3_vfs](system).FxOpen)(tls, system, path, id, flags, got)
	if code != sqlite3.SQLITE_OK || path == 0 {
		return code
	}
	d, name := find(libc.GoString(path))
	if d == nil {
		return code
	}
	opened := at[sqlite3.Tsqlite3_file](id)
	h, err := d.open(name)
	f := &openFile{handle: h, system: at[sqlite3.Tsqlite3_io_methods](opened.FpMethods), named: flags&(sqlite3.SQLITE_OPEN_WAL|sqlite3.SQLITE_OPEN_MAIN_JOURNAL) == 0}
	if err != nil {
		f.close(tls, id)
		opened.FpMethods = 0
		return sqlite3.SQLITE_CANTOPEN
	}
	mounts.Lock()
	defer mounts.Unlock()
	mounts.open[id] = f
	ours := mounts.ours[opened.FpMethods]
	if ours == 0 {
		ours = libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(*f.system)))
		m := at[sqlite3.Tsqlite3_io_methods](ours)
		*m = *f.system
		m.FxWrite, m.FxTruncate, m.FxSync, m.FxClose = pointer(writeFile), pointer(truncateFile), pointer(syncFile), pointer(closeFile)
		mounts.ours[opened.FpMethods] = ours
	}
	opened.FpMethods = ours
	return code
}

func deleteFile(tls *libc.TLS, _, path uintptr, syncFolder int32) int32 {
	if d, name := find(libc.GoString(path)); d != nil {
		err := d.Remove(name)
		if err == nil && syncFolder != 0 {
			err = d.Sync()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return sqlite3.SQLITE_IOERR_DELETE
		}
	}
	return call[func(*libc.TLS, uintptr, uintptr, int32) int32](at[sqlite3.Tsqlite3_vfs](system).FxDelete)(tls, system, path, syncFolder)
}

// sleep waits for a lock of another connection, on the clock of Go.
func sleep(_ *libc.TLS, _ uintptr, microseconds int32) int32 {
	time.Sleep(time.Duration(microseconds) * time.Microsecond)
	return microseconds
}

func writeFile(tls *libc.TLS, id, from uintptr, size int32, offset int64) int32 {
	f := opened(id)
	n, err := f.WriteAt(unsafe.Slice(at[byte](from), size), offset)
	code := int32(sqlite3.SQLITE_OK)
	if n > 0 {
		code = call[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.system.FxWrite)(tls, id, from, int32(n), offset)
	}
	if errors.Is(err, syscall.ENOSPC) {
		return sqlite3.SQLITE_FULL
	}
	return codeOf(err, sqlite3.SQLITE_IOERR_WRITE, code)
}

func truncateFile(tls *libc.TLS, id uintptr, size int64) int32 {
	f := opened(id)
	if err := f.Truncate(size); err != nil {
		return sqlite3.SQLITE_IOERR_TRUNCATE
	}
	return call[func(*libc.TLS, uintptr, int64) int32](f.system.FxTruncate)(tls, id, size)
}

// syncFile also makes the name of the file durable, and syncs the folder with the first sync of a log, as SQLite
// does.
func syncFile(_ *libc.TLS, id uintptr, _ int32) int32 {
	h := opened(id)
	err := h.Sync()
	if err == nil {
		h.disk.mu.Lock()
		defer h.disk.mu.Unlock()
		if h.disk.durable[h.name] = h.file; !h.named {
			h.disk.sync(above(h.name))
			h.named = true
		}
	}
	return codeOf(err, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_OK)
}

func closeFile(tls *libc.TLS, id uintptr) int32 {
	f := opened(id)
	mounts.Lock()
	delete(mounts.open, id)
	mounts.Unlock()
	return f.close(tls, id)
}

func (f *openFile) close(tls *libc.TLS, id uintptr) int32 {
	return call[func(*libc.TLS, uintptr) int32](f.system.FxClose)(tls, id)
}

// codeOf is a code of SQLite for an error, or else another.
func codeOf(err error, failed, otherwise int32) int32 {
	if err != nil {
		return failed
	}
	return otherwise
}

// at is what is at an address of SQLite's memory.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// pointer is a function as SQLite calls it, and call such a function as we do.
func pointer(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }

func call[F any](f uintptr) F { return *(*F)(unsafe.Pointer(&f)) }
