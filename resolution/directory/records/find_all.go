package records

import "runtime"

// together is how many keys FindAll looks up at a time, so that the processor loads the
// memory of many of them at once.
const together = 32

// FindAll sets rows to the row of each key, None without one. It skips empty keys. Call it
// under columnfile.Guard.
func (f *File) FindAll(keys []string, rows []uint32) {
	var hashes [together]Hash
	for from := 0; from < len(keys); from += together {
		part := keys[from:min(from+together, len(keys))]
		for i, key := range part {
			hashes[i] = HashOf(key)
		}
		found := rows[from : from+len(part)]
		f.keys.FirstRows(hashes[:len(part)], found)
		f.Touch(found, 1)
		for i, key := range part {
			switch row := found[i]; {
			case key == "":
				found[i] = None
			case row != None && !f.hasKey(row, key):
				found[i] = f.Find(key) // another key with the same 32 bits of hash
			}
		}
	}
}

const cacheLine = 64

// Touch reads a byte of each cache line in the first bytes of the records of rows, so that
// the processor waits for the memory of many records at once. Call it under
// columnfile.Guard.
func (f *File) Touch(rows []uint32, first uint64) {
	var starts [together]uint64
	for len(rows) > 0 {
		n := min(together, len(rows))
		for i, row := range rows[:n] {
			if row != None {
				starts[i] = f.offsets.At(uint64(row))
			}
		}
		sum := byte(0)
		for i, row := range rows[:n] {
			if row != None {
				for at := starts[i]; at < min(starts[i]+first, uint64(f.heap.Len())); at += cacheLine {
					sum += f.heap.At(at)
				}
			}
		}
		runtime.KeepAlive(sum)
		rows = rows[n:]
	}
}

// FirstRows sets rows to the first row that may have each hash, None without
// one. Call it under columnfile.Guard.
func (x *Index) FirstRows(hashes []Hash, rows []uint32) {
	var ends [together][2]uint32
	for len(hashes) > 0 {
		n := min(together, len(hashes))
		for i, h := range hashes[:n] {
			copy(ends[i][:], x.starts.Slice(h.High>>x.shift, h.High>>x.shift+2))
		}
		sum := uint64(0) // the search below waits for each bucket; this loads all of them at once
		for i := range n {
			if ends[i][0] < ends[i][1] {
				sum += x.entries.At(uint64(ends[i][0]))
			}
		}
		runtime.KeepAlive(sum)
		for i, h := range hashes[:n] {
			rows[i] = None
			for _, e := range x.entries.Slice(uint64(ends[i][0]), uint64(ends[i][1])) {
				if uint32(e>>32) == uint32(h.High) {
					rows[i] = uint32(e)
					break
				}
			}
		}
		hashes, rows = hashes[n:], rows[n:]
	}
}
