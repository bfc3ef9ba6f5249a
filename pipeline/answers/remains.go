package answers

// Remains counts what a log has lost of which not all records can be read, by the totals in those that can.
// It is for a log whose records are elsewhere than in a folder.
type Remains struct {
	found *salvage
	read  *generation
	any   bool // a record was taken
}

// NewRemains begins to count behind what was spent by runs before, and the calls that were open.
func NewRemains(spent map[string]Spending, open []OpenCall) *Remains {
	r := &Remains{found: newSalvage(), read: newGeneration(0)}
	r.found.logs = []*generation{r.read}
	for name, p := range spent {
		r.found.have[name] = runTotal{Name: name, Spending: p}
	}
	for _, c := range open {
		r.found.open[c.Hash] = true
	}
	return r
}

// Miss says that records are missing before the next one.
func (r *Remains) Miss() { r.found.gap = true }

// Take counts a record. How many calls runs had begun before the first record is not known.
func (r *Remains) Take(record []byte) error {
	r.found.lost.AtMost = r.found.lost.AtMost || r.found.gap && !r.any
	r.any = true
	return r.found.take(record, r.read)
}

// End returns what is lost, and by the names of runs the calls that have to be kept as spent.
func (r *Remains) End() (lost Lost, unnamed map[string]int64) {
	if r.found.gap {
		r.found.loseEnd()
	}
	return r.found.lost, r.found.unnamed
}

// Found returns how many answers the records had, and how many calls are open behind them.
func (r *Remains) Found() (answers, calls int64) {
	return int64(len(r.read.latest)), int64(len(r.found.open))
}
