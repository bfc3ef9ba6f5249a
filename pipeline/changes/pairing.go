package changes

import "slices"

// pairing pairs the rows of two datasets that are of one group, in their order. It takes them in
// the order of their groups, and keeps those of the groups with the same beginning: almost always
// one.
type pairing struct {
	group func(unmatched) groupID
	// numbers counts the rows of each group into nth.
	numbers bool
	pair    func(old, fresh unmatched) error
	alone   func(unmatched) error
	rows    [2]int64 // of the old and the new dataset
	high    uint64
	open    []openGroup
}

// groupID names a group: the digest of what its rows have in common.
type groupID struct {
	digest
	more uint64
}

// byContent are the groups of rows with the same content.
func byContent(u unmatched) groupID { return groupID{u.values, u.more} }

// byKey are the groups of rows with the same key.
func byKey(u unmatched) groupID { return groupID{u.key, 0} }

// openGroup has the rows of a group that are not paired yet. They are of one dataset.
type openGroup struct {
	id      groupID
	waiting []unmatched
	paired  int      // of waiting, those that are paired
	counts  [2]int32 // rows of the old and the new dataset so far
}

func (p *pairing) add(u unmatched) error {
	id := p.group(u)
	if id.Hi != p.high {
		if err := p.end(); err != nil {
			return err
		}
		p.high = id.Hi
	}
	g := p.find(id)
	if g.counts[u.side()]++; p.numbers {
		u.nth = g.counts[u.side()]
	}
	if g.paired == len(g.waiting) {
		g.waiting, g.paired = g.waiting[:0], 0
	}
	if len(g.waiting) == 0 || g.waiting[0].side() == u.side() {
		g.waiting = append(g.waiting, u)
		if u.row() >= p.rows[newSide-u.side()] { // the other dataset has no rows from there on
			return p.flush(g)
		}
		return nil
	}
	old, fresh := g.waiting[g.paired], u
	if g.paired++; u.side() == oldSide {
		old, fresh = u, old
	}
	return p.pair(old, fresh)
}

// find returns an open group. It uses the memory of earlier groups again.
func (p *pairing) find(id groupID) *openGroup {
	if i := slices.IndexFunc(p.open, func(g openGroup) bool { return g.id == id }); i >= 0 {
		return &p.open[i]
	}
	n := len(p.open)
	if n < cap(p.open) {
		p.open = p.open[:n+1]
	} else {
		p.open = append(p.open, openGroup{})
	}
	g := &p.open[n]
	*g = openGroup{id: id, waiting: g.waiting[:0]}
	return g
}

// end passes on the rows that are not paired.
func (p *pairing) end() error {
	for i := range p.open {
		if err := p.flush(&p.open[i]); err != nil {
			return err
		}
	}
	p.open = p.open[:0]
	return nil
}

// flush passes on the rows of a group that are not paired.
func (p *pairing) flush(g *openGroup) error {
	for _, u := range g.waiting[g.paired:] {
		if err := p.alone(u); err != nil {
			return err
		}
	}
	g.waiting, g.paired = g.waiting[:0], 0
	return nil
}
