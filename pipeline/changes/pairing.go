package changes

import "slices"

// difference is a row of the output: an old and a new row, or one of them; -1 stands for a missing one.
type difference struct {
	old, new   int64
	occurrence int32
	length     int32 // of the values of the old row in the spool
	offset     int64
}

// pairing finds the old and the new row of each key and occurrence. It takes the entries in
// their order, and keeps those of the keys with the same beginning: almost always one.
type pairing struct {
	found func(difference) error
	rows  [2]int64 // of the old and the new dataset
	high  uint64
	keys  []openKey
}

// openKey are the rows with one key that have no other row yet. They are of one dataset.
type openKey struct {
	low     uint64
	waiting []entry
	paired  int      // of waiting, those that have found their row
	counts  [2]int32 // rows of the old and the new dataset so far
}

func (p *pairing) add(e entry) error {
	if e.key.Hi != p.high {
		if err := p.end(); err != nil {
			return err
		}
		p.high = e.key.Hi
	}
	k := p.open(e.key.Lo)
	k.counts[e.side()]++
	if k.paired == len(k.waiting) {
		k.waiting, k.paired = k.waiting[:0], 0
	}
	if len(k.waiting) == 0 || k.waiting[0].side() == e.side() {
		k.waiting = append(k.waiting, e)
		if e.row() >= p.rows[newSide-e.side()] { // the other dataset has no rows from there on
			return p.alone(k)
		}
		return nil
	}
	old, fresh := k.waiting[k.paired], e
	if k.paired++; e.side() == oldSide {
		old, fresh = e, old
	}
	if old.values == fresh.values {
		return nil
	}
	return p.found(difference{old: old.row(), new: fresh.row(), occurrence: k.counts[e.side()]})
}

// open returns the key with these last bits. It uses the memory of earlier keys again.
func (p *pairing) open(low uint64) *openKey {
	if i := slices.IndexFunc(p.keys, func(k openKey) bool { return k.low == low }); i >= 0 {
		return &p.keys[i]
	}
	n := len(p.keys)
	if n < cap(p.keys) {
		p.keys = p.keys[:n+1]
	} else {
		p.keys = append(p.keys, openKey{})
	}
	k := &p.keys[n]
	*k = openKey{low: low, waiting: k.waiting[:0]}
	return k
}

// end passes on the rows that have found no other row.
func (p *pairing) end() error {
	for i := range p.keys {
		if err := p.alone(&p.keys[i]); err != nil {
			return err
		}
	}
	p.keys = p.keys[:0]
	return nil
}

// alone passes on the rows of a key that wait for another row.
func (p *pairing) alone(k *openKey) error {
	for j, e := range k.waiting[k.paired:] {
		d := difference{old: -1, new: e.row(), occurrence: k.counts[e.side()] - int32(len(k.waiting)-k.paired-1-j)}
		if e.side() == oldSide {
			d.old, d.new = e.row(), -1
		}
		if err := p.found(d); err != nil {
			return err
		}
	}
	k.waiting, k.paired = k.waiting[:0], 0
	return nil
}
