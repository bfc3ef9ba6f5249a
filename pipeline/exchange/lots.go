package exchange

import (
	"encoding/binary"
	"iter"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// Lot is a range of buckets.
type Lot struct {
	From int `json:"from"`
	To   int `json:"to"` // the bucket after the last
}

// LotKey is a key of a lot.
type LotKey struct {
	Key
	Parts uint64 // bit i is set if the i-th part of the wave has the key
	Ask   bool   // no stored answer is fresh enough
	// Matched means that it is not asked, and that its stored answer is a match.
	Matched bool
}

// CutLots cuts the hash space into lots of at most some keys, or of one bucket.
// Without keys there is one lot.
func CutLots(counts *[Buckets]int64, most int64) (lots []Lot) {
	open, keys := Lot{}, int64(0)
	for bucket, n := range counts {
		if keys > 0 && n > 0 && keys+n > most {
			lots = append(lots, open)
			open, keys = Lot{From: bucket}, 0
		}
		keys += n
		open.To = bucket + 1
	}
	return append(lots, open)
}

// Merge merges the keys of up to MaxParts parts, each of them in order.
func Merge(parts [][]Key) []LotKey {
	var all []LotKey
	for k := range merged(parts) {
		all = append(all, k)
	}
	return all
}

// merged merges lists of keys. The lists are a heap: the one with the lowest
// hash is the first. Parts has no meaning for more than MaxParts lists.
func merged(parts [][]Key) iter.Seq[LotKey] {
	return func(yield func(LotKey) bool) {
		var heap mergeHeap
		for i, keys := range parts {
			if len(keys) > 0 {
				heap = append(heap, mergeList{keys, uint64(1) << (i % MaxParts)})
			}
		}
		for i := len(heap)/2 - 1; i >= 0; i-- {
			heap.sink(i)
		}
		for len(heap) > 0 {
			k := LotKey{Key: heap[0].keys[0]}
			for len(heap) > 0 && heap[0].keys[0].Hash == k.Hash {
				k.Parts |= heap[0].bit
				heap.advance()
			}
			if !yield(k) {
				return
			}
		}
	}
}

type mergeList struct {
	keys []Key
	bit  uint64
}

type mergeHeap []mergeList

// advance takes the first key from the first list.
func (h *mergeHeap) advance() {
	all := *h
	if all[0].keys = all[0].keys[1:]; len(all[0].keys) == 0 {
		all[0] = all[len(all)-1]
		*h = all[:len(all)-1]
	}
	h.sink(0)
}

// sink restores the order below a list.
func (h *mergeHeap) sink(i int) {
	all := *h
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(all); child++ {
			if all[child].keys[0].Hash.Compare(all[least].keys[0].Hash) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}

// The file of a lot has its keys, ordered by their hashes, and a checksum.
const lotMagic = "ldlot\x00\x00\x01"

// EncodeLot encodes the keys of a lot.
func EncodeLot(keys []LotKey) []byte {
	data := binary.AppendUvarint([]byte(lotMagic), uint64(len(keys)))
	for _, k := range keys {
		data = append(data, k.Hash[:]...)
		data = binary.AppendUvarint(data, k.Parts)
		data = append(data, flag(k.Ask, 1)|flag(k.Matched, 2))
		data = fields.Append(data, k.Text)
	}
	return binary.LittleEndian.AppendUint32(data, checksum(data))
}

// DecodeLot decodes the file of a lot. name is for errors. The keys share the
// memory of data.
func DecodeLot(name string, data []byte) ([]LotKey, error) {
	d, err := checked(name, data, lotMagic)
	if err != nil {
		return nil, err
	}
	keys := make([]LotKey, d.Count())
	for i := range keys {
		k := LotKey{Key: Key{Hash: answers.ReadHash(d)}, Parts: d.Uint()}
		flags := d.Byte()
		k.Text, k.Ask, k.Matched = d.Bytes(), flags == 1, flags == 2
		if d.Broken || k.Parts == 0 || flags > 2 || len(k.Text) == 0 || i > 0 && k.Hash.Compare(keys[i-1].Hash) <= 0 {
			return nil, damaged(name, "impossible key")
		}
		keys[i] = k
	}
	return keys, decoded(d, name)
}

// checked checks magic and checksum of an object that is read as a whole.
func checked(name string, data []byte, magic string) (*fields.Reader, error) {
	n := len(data) - 4
	if n < len(magic) || string(data[:len(magic)]) != magic {
		return nil, damaged(name, "not the expected kind of object, or not all of it")
	}
	if checksum(data[:n]) != binary.LittleEndian.Uint32(data[n:]) {
		return nil, damaged(name, "it has another checksum")
	}
	return &fields.Reader{Rest: data[len(magic):n]}, nil
}

// decoded returns an error unless everything was decoded.
func decoded(d *fields.Reader, name string) error {
	if d.Broken || len(d.Rest) > 0 {
		return damaged(name, "impossible length")
	}
	return nil
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}
