package worldtest

import (
	"fmt"
	"maps"
	"slices"
)

// Damage changes a file of the disk that was synced, as disks do that lie. It returns what it
// did, "" for nothing. It comes between two lives, and what it does is drawn for something.
func (d *Disk) Damage(name string, of ...any) (did string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.names[name]
	if f == nil || len(f.disk) == 0 {
		return ""
	}
	draw := func(n int, what string) int { return d.world.Below(n, append([]any{"damage", name, what}, of...)...) }
	switch draw(20, "kind") {
	case 0:
		delete(d.names, name)
		delete(d.durable, name)
		return "gone"
	case 1, 2:
		f.disk = f.disk[:draw(len(f.disk)/blockSize+1, "end")*blockSize]
		f.text = slices.Clone(f.disk)
		return fmt.Sprint("cut to ", len(f.disk))
	}
	blocks := 1
	if draw(2, "page") == 0 {
		blocks = 8
	}
	first := draw(len(f.disk)/blockSize+1, "block")
	if written := slices.Sorted(maps.Keys(f.before)); len(written) > 0 && draw(2, "written over") == 0 {
		first = written[draw(len(written), "which")]
	}
	first -= first % blocks
	did, change := "zeroed", func(_ int, text []byte) { clear(text) }
	switch draw(3, "how") {
	case 0:
		did = "flipped"
		bit := draw(blocks*blockSize*8, "bit")
		change = func(block int, text []byte) {
			if at := bit/8 - (block-first)*blockSize; at >= 0 && at < len(text) {
				text[at] ^= 1 << (bit % 8)
			}
		}
	case 1:
		did = "old"
		change = func(block int, text []byte) { copy(text, f.before[block]) }
	}
	for block := first; block < first+blocks && block*blockSize < len(f.disk); block++ {
		change(block, f.disk[block*blockSize:min((block+1)*blockSize, len(f.disk))])
	}
	f.text = slices.Clone(f.disk)
	return fmt.Sprintf("%s from block %d, of %d", did, first, blocks)
}
