package worldtest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/internal/s3test"
)

// Keep keeps what is on a disk between two lives. back brings it back.
func (d *Disk) Keep() (back func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	names, missing := map[string]*file{}, d.Missing
	for name, f := range d.names {
		names[name] = f.clone()
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.Missing, d.names, d.durable = missing, map[string]*file{}, map[string]*file{}
		for name, f := range names {
			f = f.clone()
			d.names[name], d.durable[name] = f, f
		}
	}
}

// KeepFile keeps a file of a disk between two lives, or that there is none. back brings it back.
func (d *Disk) KeepFile(name string) (back func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f != nil {
		f = f.clone()
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if f == nil {
			delete(d.names, name)
			delete(d.durable, name)
			return
		}
		d.names[name], d.durable[name] = f, f
	}
}

// clone is a file with all that is on the disk, and nothing that is not.
func (f *file) clone() *file {
	c := &file{number: f.number, folder: f.folder, text: slices.Clone(f.text), changed: f.changed, synced: f.changed, before: maps.Clone(f.before), unsynced: map[int]bool{}, doubtful: map[int]bool{}}
	c.disk = slices.Clone(c.text)
	return c
}

// Damage changes a file of the disk that was synced, as disks do that lie. It returns what it
// did, "" for nothing. It comes between two lives, and what it does is drawn for something. other is a name
// that the file may be doubled under; "" for none.
func (d *Disk) Damage(name, other string, of ...any) (did string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.names {
		f.restart(func(int) bool { return true }) // no crash loses what damage is compared with
	}
	d.durable = maps.Clone(d.names)
	f := d.names[name]
	if f == nil || len(f.disk) == 0 {
		return ""
	}
	draw := func(n int, what string) int { return d.world.Below(n, append([]any{"damage", name, what}, of...)...) }
	switch kind := draw(20, "kind"); {
	case kind == 0:
		delete(d.names, name)
		delete(d.durable, name)
		return "gone"
	case kind <= 2:
		f.disk = f.disk[:draw(len(f.disk)/blockSize+1, "end")*blockSize]
		f.text = slices.Clone(f.disk)
		return fmt.Sprint("cut to ", len(f.disk))
	case kind <= 5 && other != "":
		d.made++
		double := f.clone()
		double.number = d.made
		d.names[other], d.durable[other] = double, double
		return "doubled as " + other
	}
	did = f.damageBlocks(draw)
	f.text = slices.Clone(f.disk)
	return did
}

// damageBlocks changes a block, or a page of them, and says what it did.
func (f *file) damageBlocks(draw func(n int, what string) int) string {
	blocks := 1
	if draw(2, "page") == 0 {
		blocks = 8
	}
	first := draw(len(f.disk)/blockSize+1, "block")
	if written := slices.Sorted(maps.Keys(f.before)); len(written) > 0 && draw(2, "written over") == 0 {
		first = written[draw(len(written), "which")]
	}
	first -= first % blocks
	what, change := "zeroed", func(_ int, text []byte) { clear(text) }
	switch draw(3, "how") {
	case 0:
		what = "flipped"
		bit := draw(blocks*blockSize*8, "bit")
		change = func(block int, text []byte) {
			if at := bit/8 - (block-first)*blockSize; at >= 0 && at < len(text) {
				text[at] ^= 1 << (bit % 8)
			}
		}
	case 1:
		what = "old"
		change = func(block int, text []byte) { copy(text, f.before[block]) }
	}
	for block := first; block < first+blocks && block*blockSize < len(f.disk); block++ {
		change(block, f.disk[block*blockSize:min((block+1)*blockSize, len(f.disk))])
	}
	return fmt.Sprintf("%s from block %d, of %d", what, first, blocks)
}

// DamageObject changes an object of a store between two lives: it is gone, cut, has another bit, or is a copy of
// another one. It returns what it did, "" for nothing. other is that one; "" for none.
func DamageObject(w *World, store *s3test.Fake, name, other string, of ...any) (did string) {
	text := store.Objects()[name]
	if text == "" {
		return ""
	}
	draw := func(n int, what string) int { return w.Below(n, append([]any{"damage", name, what}, of...)...) }
	switch kind := draw(6, "kind"); {
	case kind == 0:
		store.Change(name, nil)
		return "gone"
	case kind == 1:
		end := draw(len(text), "end")
		store.Change(name, []byte(text[:end]))
		return fmt.Sprint("cut to ", end)
	case kind == 2 && other != "":
		store.Replace(name, other)
		return "replaced by " + other
	}
	changed := []byte(text)
	bit := draw(8*len(text), "bit")
	changed[bit/8] ^= 1 << (bit % 8)
	store.Change(name, changed)
	return fmt.Sprint("flipped at ", bit/8)
}
