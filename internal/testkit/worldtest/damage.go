package worldtest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// Files are those of a disk or of a store, between two lives.
type Files interface {
	// Files are the contents of all files, by their names.
	Files() map[string]string
	// Keep keeps all files, and KeepFile one, or that there is none. back brings them back.
	Keep() (back func())
	KeepFile(name string) (back func())
	// Damage changes a file, as disks and stores do that lie. It returns what it did, "" for nothing, which is
	// drawn for something. other is a name that the file may be doubled under; "" for none.
	Damage(name, other string, of ...any) (did string)
}

var (
	_ Files = (*Disk)(nil)
	_ Files = Objects{}
)

// Keep is that of Files.
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

// KeepFile is that of Files.
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

// Damage is that of Files.
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
	did, text := damage{d.world, name, other, of}.do(f.disk, f.before, blockSize)
	switch {
	case text == nil:
		delete(d.names, name)
		delete(d.durable, name)
	case strings.HasPrefix(did, "doubled"):
		d.made++
		double := f.clone()
		double.number = d.made
		d.names[other], d.durable[other] = double, double
	default:
		f.disk, f.text = text, slices.Clone(text)
	}
	return did
}

// Objects are the objects of a store below the bucket and prefix Below, as Files.
type Objects struct {
	World *World
	Store *s3test.Fake
	Below string
}

// objectBlock is how many bytes of an object damage changes at once, since most are small.
const objectBlock = 32

// Files is that of Files.
func (o Objects) Files() map[string]string {
	all := map[string]string{}
	for name, text := range o.Store.Objects() {
		if below, is := strings.CutPrefix(name, o.Below); is {
			all[below] = text
		}
	}
	return all
}

// Keep is that of Files.
func (o Objects) Keep() (back func()) {
	return o.Store.Keep(func(name string) bool { return strings.HasPrefix(name, o.Below) })
}

// KeepFile is that of Files.
func (o Objects) KeepFile(name string) (back func()) {
	return o.Store.Keep(func(other string) bool { return other == o.Below+name })
}

// Damage is that of Files. The ETag of the object stays.
func (o Objects) Damage(name, other string, of ...any) (did string) {
	before := o.Files()[name]
	if before == "" {
		return ""
	}
	did, text := damage{o.World, name, other, of}.do([]byte(before), nil, objectBlock)
	if strings.HasPrefix(did, "doubled") {
		o.Store.Replace(o.Below+other, o.Below+name)
	} else {
		o.Store.Change(o.Below+name, text)
	}
	return did
}

// damage is what a seed draws for a file.
type damage struct {
	world       *World
	name, other string
	of          []any
}

func (d damage) draw(n int, what string) int {
	return d.world.Below(n, append([]any{"damage", d.name, what}, d.of...)...)
}

// do damages a text. before is what was in its blocks before. It returns what it did, and the text, nil of a
// file that is gone.
func (d damage) do(text []byte, before map[int][]byte, block int) (did string, now []byte) {
	switch kind := d.draw(20, "kind"); {
	case kind == 0:
		return "gone", nil
	case kind <= 2:
		end := d.draw(len(text)/block+1, "end") * block
		return fmt.Sprint("cut to ", end), text[:end:end]
	case kind <= 5 && d.other != "":
		return "doubled as " + d.other, text
	}
	return d.changeBlocks(bytes.Clone(text), before, block)
}

// changeBlocks changes a block, or a page of them, and says what it did.
func (d damage) changeBlocks(text []byte, before map[int][]byte, size int) (did string, now []byte) {
	blocks := 1
	if d.draw(2, "page") == 0 {
		blocks = 8
	}
	first := d.draw(len(text)/size+1, "block")
	if written := slices.Sorted(maps.Keys(before)); len(written) > 0 && d.draw(2, "written over") == 0 {
		first = written[d.draw(len(written), "which")]
	}
	first -= first % blocks
	what, change := "zeroed", func(_ int, text []byte) { clear(text) }
	switch how := d.draw(3, "how"); {
	case how == 0:
		what = "flipped"
		bit := d.draw(blocks*size*8, "bit")
		change = func(block int, text []byte) {
			if at := bit/8 - (block-first)*size; at >= 0 && at < len(text) {
				text[at] ^= 1 << (bit % 8)
			}
		}
	case how == 1 && before != nil:
		what = "old"
		change = func(block int, text []byte) { copy(text, before[block]) }
	}
	for block := first; block < first+blocks && block*size < len(text); block++ {
		change(block, text[block*size:min((block+1)*size, len(text))])
	}
	return fmt.Sprintf("%s from block %d, of %d", what, first, blocks), text
}
