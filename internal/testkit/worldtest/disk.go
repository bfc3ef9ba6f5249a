package worldtest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
)

// blockSize is how many bytes a disk writes at once. After a crash each block that was not
// synced has its old content or the new one.
const blockSize = 512

// Disk is a folder on a disk, a disk.Folder. It is safe from many goroutines.
type Disk struct {
	*tree
	folder string // from the root of the disk; "" is the root
}

// tree is what all folders of a disk share.
type tree struct {
	world *World
	// Name tells the disk from others of its world, and begins its paths.
	Name string
	// Missing says that the root is not there until Make.
	Missing bool
	// Failing is the probability that a write or a sync fails.
	Failing float64
	// Slow is the longest time that a sync takes.
	Slow time.Duration
	// FullFrom is the write of a life with which the disk is full, for FullFor: no file grows.
	// 0 is never.
	FullFrom int
	FullFor  time.Duration

	mu      sync.Mutex
	writes  int              // of this life
	filled  time.Time        // when the disk became full, in this life
	refused int              // writes of this life for which there was no room
	names   map[string]*file // from the root, as programs see them
	durable map[string]*file // as they were at the last Sync of their folders
	locks   map[string]*lock // of folders
	made    int
	changed time.Time // when a file was changed last
}

// file is what programs read, and what survives a crash for sure. A folder is one without content.
type file struct {
	number          int
	folder          bool
	text, disk      []byte
	changed, synced time.Time      // when the text was changed, and that on the disk
	before          map[int][]byte // what was in blocks before it was written over
	unsynced        map[int]bool   // blocks that the next sync writes
	doubtful        map[int]bool   // blocks that a failed sync left: no later sync writes them
}

// NewDisk makes an empty disk of a world.
func NewDisk(w *World) *Disk {
	return &Disk{tree: &tree{world: w, names: map[string]*file{}, durable: map[string]*file{}, locks: map[string]*lock{}}}
}

// Create is that of disk.Folder.
func (d *Disk) Create(name string, _ fs.FileMode) (disk.File, error) {
	name = d.name(name)
	if err := d.operate("create " + name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.has(name); err != nil {
		return nil, err
	}
	if d.isFolder(name) {
		return nil, d.failed(name, syscall.EISDIR)
	}
	f := d.file(name)
	f.truncate(0)
	f.changed = d.now()
	return d.handle(f, name), nil
}

// file is the file of a name, which it makes if there is none.
func (t *tree) file(name string) *file {
	f := t.names[name]
	if f == nil {
		t.made++
		f = &file{number: t.made, before: map[int][]byte{}, unsynced: map[int]bool{}, doubtful: map[int]bool{}}
		t.names[name] = f
	}
	return f
}

// now is the time of a change: that of no other one. The caller holds the lock.
func (t *tree) now() time.Time {
	now := time.Now().Round(0)
	if !now.After(t.changed) {
		now = t.changed.Add(1)
	}
	t.changed = now
	return now
}

// Open is that of disk.Folder.
func (d *Disk) Open(name string) (disk.File, error) {
	name = d.name(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.existing(name)
	if err != nil {
		return nil, err
	}
	return d.handle(f, name), nil
}

// ReadFile is that of disk.Folder.
func (d *Disk) ReadFile(name string) ([]byte, error) {
	name = d.name(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.existing(name)
	switch {
	case err != nil:
		return nil, err
	case f.folder:
		return nil, d.failed(name, syscall.EISDIR)
	}
	return slices.Clone(f.text), nil
}

// Stat is that of disk.Folder.
func (d *Disk) Stat(name string) (fs.FileInfo, error) {
	name = d.name(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.existing(name)
	if err != nil {
		return nil, err
	}
	return f.info(name), nil
}

// Rename is that of disk.Folder.
func (d *Disk) Rename(from, to string) error {
	from, to = d.name(from), d.name(to)
	if err := d.operate("rename " + from); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.existing(from)
	if err == nil {
		err = d.has(to)
	}
	if err != nil {
		return err
	}
	if f.folder || d.isFolder(to) {
		return d.failed(from, syscall.EISDIR)
	}
	d.names[to] = f
	delete(d.names, from)
	return nil
}

// operate makes a step that may fail, and takes its time.
func (d *tree) operate(what string) error {
	at, _, err := d.world.step(what)
	if err != nil {
		return err
	}
	if d.Slow > 0 {
		time.Sleep(time.Duration(d.world.Draw("slow", d.world.life, at) % uint64(d.Slow)))
		if err := d.world.Alive(); err != nil {
			return err
		}
	}
	if d.world.Chance(d.Failing, "failing", d.world.life, at) {
		return d.world.fault(what, syscall.EIO)
	}
	return nil
}

// room counts a write, and returns how many of its bytes fit. The caller holds the lock.
func (t *tree) room(f *file, at int) int {
	if t.writes++; t.FullFrom > 0 && t.writes == t.FullFrom {
		t.filled = time.Now()
	}
	if t.full() {
		return max(len(f.text)-at, 0)
	}
	return math.MaxInt
}

func (t *tree) full() bool { return !t.filled.IsZero() && time.Since(t.filled) < t.FullFor }

// Full reports whether the disk is full now, and how many writes of this life had no room.
func (t *tree) Full() (now bool, refused int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.full(), t.refused
}

// Writes is how many writes this life has made.
func (t *tree) Writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

// Restart makes of the disk what is on it when the machine starts again. After a power cut,
// what was not synced may be lost, each block and each name by itself. Else the machine goes on: nothing is lost,
// and what was not synced may be lost by a later power cut.
func (d *Disk) Restart(powerCut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes, d.filled, d.refused = 0, time.Time{}, 0
	if !powerCut {
		return
	}
	w := d.world
	lost := func(what string, of ...any) bool {
		return w.Draw(append([]any{what + d.Name, w.life}, of...)...)%2 == 0
	}
	if d.Missing && len(d.durable) > 0 && lost("removal") {
		d.Missing = false
	}
	is := map[string]*file{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(d.durable)), slices.Collect(maps.Keys(d.names))) {
		is[name] = d.names[name]
		if was := d.durable[name]; was != is[name] && !d.Missing && lost("name", d.renamed(name)) {
			is[name] = was
		}
	}
	maps.DeleteFunc(is, func(_ string, f *file) bool { return f == nil })
	for _, name := range slices.Sorted(maps.Keys(is)) { // folders come before what is in them
		if in := above(name); in != "" && (is[in] == nil || !is[in].folder) {
			delete(is, name)
		}
	}
	for _, f := range is {
		f.restart(func(block int) bool { return !lost("block", f.number, block) })
	}
	d.names, d.durable = is, maps.Clone(is)
}

// renamed is the name that the durable file of a name was given since, or else the name: both are
// one change of the folder.
func (d *tree) renamed(name string) string {
	for to, f := range d.names {
		if d.names[name] == nil && f == d.durable[name] {
			return to
		}
	}
	return name
}

// handle is an open file.
type handle struct {
	disk *tree
	file *file
	name string
	read *int64 // where the next Read begins
}

var _ disk.File = handle{}

func (t *tree) handle(f *file, name string) handle { return handle{t, f, name, new(int64)} }

// Stat is that of fs.File.
func (h handle) Stat() (fs.FileInfo, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.file.info(h.name), h.disk.world.Alive()
}

// Read is that of fs.File.
func (h handle) Read(p []byte) (int, error) {
	n, err := h.ReadAt(p, *h.read)
	if *h.read += int64(n); n > 0 {
		err = nil
	}
	return n, err
}

// ReadAt is that of io.ReaderAt.
func (h handle) ReadAt(p []byte, at int64) (n int, err error) {
	if err := h.disk.world.Alive(); err != nil {
		return 0, err
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return bytes.NewReader(h.file.text).ReadAt(p, at)
}

// WriteAt writes to memory. If it fails, the disk is full, and a part is written.
func (h handle) WriteAt(p []byte, at int64) (int, error) {
	step, _, err := h.disk.world.step("write " + h.name)
	if err != nil {
		return 0, err
	}
	fits := len(p)
	if w := h.disk.world; w.Chance(h.disk.Failing, "full", w.life, step) {
		fits, err = w.Below(max(len(p), 1), "fits", w.life, step), w.fault("write "+h.name, syscall.ENOSPC)
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if room := h.disk.room(h.file, int(at)); err == nil && room < fits {
		h.disk.refused++
		h.disk.world.Note("no room: write %s", h.name)
		fits, err = room, syscall.ENOSPC
	}
	h.file.write(p[:fits], int(at))
	h.file.changed = h.disk.now()
	return fits, err
}

// Truncate cuts the file in memory.
func (h handle) Truncate(size int64) error {
	if _, _, err := h.disk.world.step("truncate " + h.name); err != nil {
		return err
	}
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	h.file.truncate(int(size))
	h.file.changed = h.disk.now()
	return nil
}

// Sync writes the file to the disk. If it fails, as much as the crash of that moment would
// leave may be there, and the next Sync does not write the rest.
func (h handle) Sync() error {
	err := h.disk.operate("sync " + h.name)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	switch {
	case err == nil:
		h.file.sync()
	case !errors.Is(err, ErrCrashed):
		maps.Copy(h.file.doubtful, h.file.unsynced)
		clear(h.file.unsynced)
	}
	return err
}

// Close is that of io.Closer.
func (h handle) Close() error { return h.disk.world.Alive() }

func (f *file) write(p []byte, at int) {
	if end := at + len(p); end > len(f.text) {
		f.text = append(f.text, make([]byte, end-len(f.text))...)
	}
	copy(f.text[at:], p)
	for block := at / blockSize; block*blockSize < at+len(p); block++ {
		f.unsynced[block] = true
		delete(f.doubtful, block)
	}
}

func (f *file) truncate(size int) {
	f.text = f.text[:min(size, len(f.text))]
	beyond := func(block int, _ bool) bool { return block*blockSize >= size }
	maps.DeleteFunc(f.unsynced, beyond)
	maps.DeleteFunc(f.doubtful, beyond)
}

func (f *file) sync() {
	for block := range f.unsynced {
		f.store(block)
	}
	clear(f.unsynced)
	f.resize(len(f.text))
	f.synced = f.changed
}

// store writes a block to the disk.
func (f *file) store(block int) {
	first := block * blockSize
	last := min(first+blockSize, len(f.text))
	f.resize(max(len(f.disk), last))
	if !bytes.Equal(f.disk[first:last], f.text[first:last]) {
		f.before[block] = slices.Clone(f.disk[first:last])
	}
	copy(f.disk[first:last], f.text[first:last])
}

func (f *file) resize(size int) {
	f.disk = append(f.disk[:min(size, len(f.disk))], make([]byte, max(size-len(f.disk), 0))...)
}

// restart makes of the file what is on the disk. stays says which blocks were written although
// they were not synced.
func (f *file) restart(stays func(block int) bool) {
	if len(f.text) < len(f.disk) && stays(-1) {
		f.resize(len(f.text))
	}
	for _, blocks := range []map[int]bool{f.unsynced, f.doubtful} {
		for block := range blocks {
			if stays(block) {
				f.store(block)
			}
		}
		clear(blocks)
	}
	if !stays(-2) {
		f.changed = f.synced
	}
	f.text, f.synced = slices.Clone(f.disk), f.changed
}

// info is what Stat says of the file.
func (f *file) info(name string) fs.FileInfo {
	return info{f.folder, path.Base(name), int64(len(f.text)), f.changed}
}

type info struct {
	folder  bool
	name    string
	size    int64
	changed time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return i.changed }
func (i info) IsDir() bool        { return i.folder }
func (i info) Sys() any           { return nil }

// Mode is that of a file for its owner alone.
func (i info) Mode() fs.FileMode {
	if i.folder {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

// Files are the contents of all files of the disk, by their names from its root, as who looks at it
// between two lives sees them.
func (d *Disk) Files() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]string{}
	for name, f := range d.names {
		if !f.folder {
			all[name] = string(f.text)
		}
	}
	return all
}
