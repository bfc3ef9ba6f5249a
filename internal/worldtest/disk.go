package worldtest

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// blockSize is how many bytes a disk writes at once. After a crash each block that was not
// synced has its old content or the new one.
const blockSize = 512

// Disk is a folder on a disk, an appendlog.Folder. It is safe from many goroutines.
type Disk struct {
	world *World
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

var _ appendlog.Folder = (*Disk)(nil)

// Create is that of appendlog.Folder.
func (d *Disk) Create(name string) (*appendlog.Log, error) {
	if err := d.operate("create " + name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.file(name)
	f.truncate(0)
	return appendlog.New(handle{d, f, name}), nil
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

// ReadFile is that of appendlog.Folder.
func (d *Disk) ReadFile(name string) ([]byte, error) {
	if err := d.world.Alive(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(f.text), nil
}

// Names is that of appendlog.Folder.
func (d *Disk) Names() ([]string, error) {
	if err := d.world.Alive(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Remove is that of appendlog.Folder.
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

// Sync is that of appendlog.Folder.
func (d *Disk) Sync() error {
	if err := d.operate("sync folder"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
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
	for _, name := range slices.Sorted(maps.Keys(d.durable)) {
		if was := d.durable[name]; powerCut && d.names[name] != was && w.Draw("name", w.life, name)%2 == 0 {
			d.names[name] = was
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if powerCut && d.durable[name] == nil && w.Draw("name", w.life, name)%2 == 0 {
			delete(d.names, name)
		}
	}
	for _, f := range d.names {
		if powerCut {
			f.restart(func(block int) bool { return w.Draw("block", w.life, f.number, block)%2 == 0 })
		}
	}
	d.durable = maps.Clone(d.names)
}

// handle is an open file.
type handle struct {
	disk *Disk
	file *file
	name string
}

var _ appendlog.Storage = handle{}

// WriteAt writes to memory. If it fails, the disk is full, and a part is written.
func (h handle) WriteAt(p []byte, at int64) (int, error) {
	step, _, err := h.disk.world.step("write " + h.name)
	if err != nil {
		return 0, err
	}
	fits := len(p)
	if w := h.disk.world; w.Chance(h.disk.Failing, "full", w.life, step) {
		fits, err = w.Below(len(p), "fits", w.life, step), w.fault("write "+h.name, syscall.ENOSPC)
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
