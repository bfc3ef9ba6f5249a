package worldtest

import (
	"errors"
	"io/fs"
	"maps"
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
	world *World
	// Name tells the folder from others of its world.
	Name string
	// Missing says that the folder is not there until Make.
	Missing bool
	// Failing is the probability that a write or a sync fails.
	Failing float64
	// Slow is the longest time that a sync takes.
	Slow time.Duration

	mu      sync.Mutex
	names   map[string]*file // as programs see them
	durable map[string]*file // as they were at the last Sync of the folder
	made    int
}

// file is what programs read, and what survives a crash for sure.
type file struct {
	number     int
	text, disk []byte
	unsynced   map[int]bool // blocks that the next sync writes
	doubtful   map[int]bool // blocks that a failed sync left: no later sync writes them
}

// NewDisk makes an empty disk of a world.
func NewDisk(w *World) *Disk {
	return &Disk{world: w, names: map[string]*file{}, durable: map[string]*file{}}
}

var _ disk.Folder = (*Disk)(nil)

// Make is that of disk.Folder.
func (d *Disk) Make() error {
	if err := d.operate("make folder"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Missing {
		d.Missing = false
		clear(d.durable) // that the folder was removed is durable with its successor
	}
	return nil
}

// Create is that of disk.Folder.
func (d *Disk) Create(name string, _ fs.FileMode) (disk.File, error) {
	if err := d.operate("create " + name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Missing {
		return nil, fs.ErrNotExist
	}
	f := d.file(name)
	f.truncate(0)
	return handle{d, f, name}, nil
}

// Open is that of disk.Folder.
func (d *Disk) Open(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.existing(name)
	if err != nil {
		return nil, err
	}
	return handle{d, f, name}, nil
}

// existing is the file of a name that is there. The caller holds the lock.
func (d *Disk) existing(name string) (*file, error) {
	if err := d.world.Alive(); err != nil {
		return nil, err
	}
	if f := d.names[name]; f != nil {
		return f, nil
	}
	return nil, fs.ErrNotExist
}

// file is the file of a name, which it makes if there is none.
func (d *Disk) file(name string) *file {
	f := d.names[name]
	if f == nil {
		d.made++
		f = &file{number: d.made, unsynced: map[int]bool{}, doubtful: map[int]bool{}}
		d.names[name] = f
	}
	return f
}

// ReadFile is that of disk.Folder.
func (d *Disk) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.existing(name)
	if err != nil {
		return nil, err
	}
	return slices.Clone(f.text), nil
}

// Names is that of disk.Folder.
func (d *Disk) Names() ([]string, error) {
	if err := d.world.Alive(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Missing {
		return nil, fs.ErrNotExist
	}
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Remove is that of disk.Folder.
func (d *Disk) Remove(name string) error {
	if err := d.operate("remove " + name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	delete(d.names, name)
	return nil
}

// Rename is that of disk.Folder.
func (d *Disk) Rename(from, to string) error {
	if err := d.operate("rename " + from); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[from] == nil {
		return fs.ErrNotExist
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

// RemoveAll is that of disk.Folder. A crash may come between two of its files.
func (d *Disk) RemoveAll() error {
	names, err := d.Names()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := d.Remove(name); err != nil {
			return err
		}
	}
	if err := d.operate("remove folder"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Missing = true
	return nil
}

// Path is that of disk.Folder.
func (d *Disk) Path(name string) string { return path.Join(d.Name, name) }

// Sync is that of disk.Folder.
func (d *Disk) Sync() error {
	if err := d.operate("sync folder"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Missing {
		return fs.ErrNotExist
	}
	d.durable = maps.Clone(d.names)
	return nil
}

// operate makes a step that may fail, and takes its time.
func (d *Disk) operate(what string) error {
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

// Restart makes of the disk what is on it when the machine starts again. After a power cut,
// what was not synced may be lost, each block and each name by itself; else nothing is.
func (d *Disk) Restart(powerCut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.world
	lost := func(what string, of ...any) bool {
		return powerCut && w.Draw(append([]any{what + d.Name, w.life}, of...)...)%2 == 0
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
	for _, f := range is {
		if powerCut {
			f.restart(func(block int) bool { return !lost("block", f.number, block) })
		}
	}
	d.names, d.durable = is, maps.Clone(is)
}

// renamed is the name that the durable file of a name was given since, or else the name: both are
// one change of the folder.
func (d *Disk) renamed(name string) string {
	for to, f := range d.names {
		if d.names[name] == nil && f == d.durable[name] {
			return to
		}
	}
	return name
}

// handle is an open file.
type handle struct {
	disk *Disk
	file *file
	name string
}

var _ disk.File = handle{}

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
	h.file.write(p[:fits], int(at))
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
}

// store writes a block to the disk.
func (f *file) store(block int) {
	first := block * blockSize
	last := min(first+blockSize, len(f.text))
	f.resize(max(len(f.disk), last))
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
	f.text = slices.Clone(f.disk)
}
