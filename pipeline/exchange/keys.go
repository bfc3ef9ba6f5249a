package exchange

import (
	"encoding/binary"
	"errors"
	"io"
	"iter"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// A file of keys has the distinct keys of a part, ordered by their hashes. Each
// bucket that has keys is one block: hash, length and text of each key. The
// footer has for each block its bucket, the number of keys, its length and its
// checksum. So the keys of a range of buckets are one read.
const keysMagic = "ldkeys\x00\x01"

// errUnsorted is a mistake of the caller.
var errUnsorted = errors.New("keys must be distinct, in order and not empty")

// WriteKeys writes a file of keys.
func WriteKeys(to io.Writer, keys iter.Seq2[Key, error]) error {
	w := &keysWriter{to: to}
	for k, err := range keys {
		if err == nil {
			err = w.add(k)
		}
		if err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	_, err := to.Write(appendFooter(nil, w.footer, keysMagic))
	return err
}

type keysWriter struct {
	to     io.Writer
	footer []byte
	last   Key // its hash; its text is not kept
	any    bool
	next   int // the bucket after the last block
	block  []byte
	count  int
}

func (w *keysWriter) add(k Key) error {
	if len(k.Text) == 0 || w.any && k.Hash.Compare(w.last.Hash) <= 0 {
		return errUnsorted
	}
	if w.any && BucketOf(k.Hash) != BucketOf(w.last.Hash) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.last.Hash, w.any = k.Hash, true
	w.block = fields.Append(append(w.block, k.Hash[:]...), k.Text)
	w.count++
	return nil
}

func (w *keysWriter) flush() error {
	if w.count == 0 {
		return nil
	}
	bucket := BucketOf(w.last.Hash)
	for _, v := range []int{bucket - w.next, w.count, len(w.block)} {
		w.footer = binary.AppendUvarint(w.footer, uint64(v))
	}
	w.footer = binary.LittleEndian.AppendUint32(w.footer, checksum(w.block))
	_, err := w.to.Write(w.block)
	w.next, w.count, w.block = bucket+1, 0, w.block[:0]
	return err
}

// Keys is a file of keys to read.
type Keys struct {
	o      Object
	blocks []keyBlock
}

type keyBlock struct {
	bucket, keys int
	at, size     int64
	sum          uint32
}

// OpenKeys reads the footer of a file of keys.
func OpenKeys(o Object) (*Keys, error) {
	footer, end, err := readFooter(o, keysMagic)
	if err != nil {
		return nil, err
	}
	k := &Keys{o: o}
	at, next := int64(0), uint64(0)
	for d := (fields.Reader{Rest: footer}); len(d.Rest) > 0; {
		bucket, keys, size := d.Uint(), d.Uint(), d.Uint()
		sum := d.Take(4)
		if d.Broken || bucket >= Buckets || next+bucket >= Buckets || keys == 0 || size > uint64(end-at) || keys > size {
			return nil, damaged(o.Name, "impossible footer")
		}
		k.blocks = append(k.blocks, keyBlock{int(next + bucket), int(keys), at, int64(size), binary.LittleEndian.Uint32(sum)})
		at, next = at+int64(size), next+bucket+1
	}
	if at != end {
		return nil, damaged(o.Name, "its blocks do not end where the footer begins")
	}
	return k, nil
}

// Count returns the number of keys.
func (k *Keys) Count() (n int64) {
	for _, b := range k.blocks {
		n += int64(b.keys)
	}
	return n
}

// AddTo adds the number of keys in each bucket.
func (k *Keys) AddTo(counts *[Buckets]int64) {
	for _, b := range k.blocks {
		counts[b.bucket] += int64(b.keys)
	}
}

// Read reads the keys of some buckets, up to but not including to. All texts
// share one piece of memory.
func (k *Keys) Read(from, to int) ([]Key, error) {
	var some []keyBlock
	keys := 0
	for _, b := range k.blocks {
		if b.bucket >= from && b.bucket < to {
			some = append(some, b)
			keys += b.keys
		}
	}
	if len(some) == 0 {
		return nil, nil
	}
	first, last := some[0], some[len(some)-1]
	data := make([]byte, last.at+last.size-first.at)
	if err := readAt(k.o, data, first.at); err != nil {
		return nil, err
	}
	all := make([]Key, 0, keys)
	for _, b := range some {
		block := data[b.at-first.at:][:b.size]
		if checksum(block) != b.sum {
			return nil, damaged(k.o.Name, "a block of keys has another checksum")
		}
		var fine bool
		if all, fine = appendBlock(all, block, b); !fine {
			return nil, damaged(k.o.Name, "impossible block of keys")
		}
	}
	return all, nil
}

// appendBlock decodes a block.
func appendBlock(all []Key, block []byte, about keyBlock) (_ []Key, fine bool) {
	d, before := fields.Reader{Rest: block}, len(all)
	for len(d.Rest) > 0 {
		k := Key{Hash: answers.ReadHash(&d), Text: d.Bytes()}
		if d.Broken || len(k.Text) == 0 || BucketOf(k.Hash) != about.bucket || len(all) > 0 && k.Hash.Compare(all[len(all)-1].Hash) <= 0 {
			return nil, false
		}
		all = append(all, k)
	}
	return all, len(all)-before == about.keys
}
