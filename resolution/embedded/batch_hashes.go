package embedded

import (
	"unsafe"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
)

// hashes makes the hashed emails of many answers, all addresses at once.
type hashes struct {
	hex  [3][]byte // by type; nil if it is not read
	read []int32   // the types that are read
}

// The codes of resolution.HashTypes.
const (
	md5Code = iota
	sha1Code
	sha256Code
)

// hashLengths are the lengths of hashes in hex, by type.
var hashLengths = [3]int{32, 40, 64}

// lists makes the hashes of the emails of answers that are read: md5, sha1 and sha256 of an
// address, or the digest itself.
func (h *hashes) lists(a *resolution.Answers) {
	keys := &a.Emails.Texts
	n := keys.Len()
	h.read = h.read[:0]
	var out [3][]byte
	for kind, length := range hashLengths {
		if !a.Unread.HashTypes[kind] {
			h.hex[kind] = resize(h.hex[kind], length*n)
			out[kind], h.read = h.hex[kind], append(h.read, int32(kind))
		}
	}
	if n > 0 && len(h.read) > 0 {
		hashlanes.Hex(out[md5Code], out[sha1Code], out[sha256Code], keys.Data, keys.Offsets)
	}
	to := &a.Hashes
	if a.Digests == 0 {
		h.listAll(a)
		return
	}
	for i := range a.Emails.Len() {
		for e, end := a.Emails.Of(i); e < end; e++ {
			key := keys.At(e)
			if !people.IsAddress(key) {
				to.Texts.Add(key)
				to.Types.Codes = append(to.Types.Codes, typeCode(len(key)))
				continue
			}
			for _, kind := range h.read {
				to.Texts.Add(h.of(kind, e))
				to.Types.Codes = append(to.Types.Codes, kind)
			}
		}
		to.End()
	}
}

// of is the hash of email e.
func (h *hashes) of(kind int32, e int) []byte {
	length := hashLengths[kind]
	return h.hex[kind][length*e : length*(e+1)]
}

// listAll is lists where all keys are addresses, whose hashes have the same lengths.
func (h *hashes) listAll(a *resolution.Answers) {
	all := 0
	for _, kind := range h.read {
		all += hashLengths[kind]
	}
	n, to := a.Emails.Texts.Len(), &a.Hashes
	data := resize(to.Texts.Data, n*all)
	offsets, types := resize(to.Texts.Offsets, len(h.read)*n+1), resize(to.Types.Codes, len(h.read)*n)
	offsets[0] = 0
	at, next := 0, 0
	for e := range n {
		for _, kind := range h.read {
			at += copy(data[at:], h.of(kind, e))
			types[next] = kind
			next++
			offsets[next] = int32(at)
		}
	}
	to.Texts, to.Types.Codes = resolution.Texts{Data: data, Offsets: offsets}, types
	for _, end := range a.Emails.Ends[min(1, len(a.Emails.Ends)):] {
		to.Ends = append(to.Ends, int32(len(h.read))*end)
	}
}

// typeCode is the code of the type of a digest by its length in hex.
func typeCode(length int) int32 {
	switch length {
	case 32:
		return md5Code
	case 40:
		return sha1Code
	}
	return sha256Code
}

// dropDigests leaves out the digests among the emails of answers, whose hashes are made.
func (b *batch) dropDigests(a *resolution.Answers) {
	if a.Digests == 0 {
		return
	}
	b.plain.Reset(nil)
	for i := range a.Emails.Len() {
		for e, end := a.Emails.Of(i); e < end; e++ {
			if key := a.Emails.Texts.At(e); people.IsAddress(key) {
				b.plain.Texts.Add(key)
			}
		}
		b.plain.End()
	}
	a.Emails, b.plain = b.plain, a.Emails
}

// text returns bytes as a string, which is valid until they change.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
