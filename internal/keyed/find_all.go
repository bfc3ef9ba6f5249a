package keyed

// together is how many keys are looked up at a time. Each step of a look-up is done for all of
// them before the next, so that the processor loads the memory of many at once.
const together = 64

// FindAll sets rows to the row of each key, None without one. It skips empty keys. Call it
// under Guard.
func (f *File) FindAll(keys []string, rows []uint32) {
	var hashes [together]Hash
	for from := 0; from < len(keys); from += together {
		part := keys[from:min(from+together, len(keys))]
		for i, key := range part {
			hashes[i] = HashOf(key)
		}
		f.findAll(part, hashes[:len(part)], rows[from:])
	}
}

// findAll is FindAll of at most together keys with their hashes.
func (f *File) findAll(keys []string, hashes []Hash, rows []uint32) {
	rows = rows[:len(keys)]
	f.keys.FirstRows(hashes, rows)
	f.Touch(rows, 0, keyLines)
	for i, key := range keys {
		switch row := rows[i]; {
		case key == "":
			rows[i] = None
		case row != None && !f.hasKey(row, key):
			rows[i] = f.Find(key) // another key with the same 32 bits of hash
		}
	}
}

const cacheLine = 64

// keyLines is how many lines of cache a key takes, wherever its record begins.
const keyLines = 2

// Touch loads some lines of cache of the records of rows: from line first, which is 0 for the
// one in which a record begins, to before line end. Call it under Guard.
func (f *File) Touch(rows []uint32, first, end uint64) {
	var places, starts [together]uint64
	for len(rows) > 0 {
		some := rows[:min(together, len(rows))]
		rows = rows[len(some):]
		n := 0
		for _, row := range some {
			if row != None {
				places[n] = uint64(row)
				n++
			}
		}
		if n == 0 {
			continue // an empty file has no memory
		}
		f.offsets.Expect(places[:n])
		f.offsets.Load(places[:n], starts[:])
		Touch(&f.heap, starts[:n], first*cacheLine, end*cacheLine, cacheLine)
	}
}

// FirstRows sets rows to the first row that may have each hash, None without
// one. Call it under Guard.
func (x *Index) FirstRows(hashes []Hash, rows []uint32) {
	if x.Len() == 0 {
		for i := range rows {
			rows[i] = None
		}
		return
	}
	for len(hashes) > 0 {
		n := min(together, len(hashes))
		x.firstRows(hashes[:n], rows[:n])
		hashes, rows = hashes[n:], rows[n:]
	}
}

// firstRows does the same for at most together hashes. In each pass it loads a line for every
// hash whose lines before were full: a quarter of the hashes take a second one. With those
// loaded one by one, email_to_hem with --directory took 5% longer.
func (x *Index) firstRows(hashes []Hash, rows []uint32) {
	var places [together]uint64
	var open [together]int // which hash each of places is for
	var lines [together]line
	for i, h := range hashes {
		places[i], open[i] = lineOf(h.High, x.named), i
	}
	for n := len(hashes); n > 0; {
		x.lines.Expect(places[:n])
		x.lines.Load(places[:n], lines[:])
		full := 0
		for k, i := range open[:n] {
			rows[i] = firstRow(&lines[k], uint32(hashes[i].High))
			places[full], open[full] = places[k]+1, i
			if rows[i] == None && lines[k][lineEntries-1] != noEntry {
				full++
			}
		}
		n = full
	}
}

// firstRow returns the first row with the bits of a hash in a line, None without one. Which
// entry it is cannot be predicted, so all are compared: the compiler then needs no branch.
func firstRow(l *line, bits uint32) uint32 {
	row := None
	for k := lineEntries - 1; k >= 0; k-- {
		if e := l[k]; uint32(e>>32) == bits {
			row = uint32(e)
		}
	}
	return row
}
