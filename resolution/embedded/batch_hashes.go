package embedded

import (
	"unsafe"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
)

// hashes makes the hashed emails of many answers, all addresses at once.
type hashes struct {
	md5, sha1, sha256 []byte // in hex
}

// The codes of resolution.HashTypes.
const (
	md5Code = iota
	sha1Code
	sha256Code
)

// lists makes the hashes of the emails of answers: md5, sha1 and sha256 of an address, or
// the digest itself.
func (h *hashes) lists(a *resolution.Answers) {
	keys := &a.Emails.Texts
	n := keys.Len()
	h.md5, h.sha1, h.sha256 = resize(h.md5, 32*n), resize(h.sha1, 40*n), resize(h.sha256, 64*n)
	if n > 0 {
		hashlanes.Hex(h.md5, h.sha1, h.sha256, keys.Data, keys.Offsets)
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
			to.Texts.Add(h.md5[32*e : 32*e+32])
			to.Texts.Add(h.sha1[40*e : 40*e+40])
			to.Texts.Add(h.sha256[64*e : 64*e+64])
			to.Types.Codes = append(to.Types.Codes, md5Code, sha1Code, sha256Code)
		}
		to.End()
	}
}

// listAll is lists where all keys are addresses, whose hashes have the same lengths.
func (h *hashes) listAll(a *resolution.Answers) {
	const all = 32 + 40 + 64
	n, to := a.Emails.Texts.Len(), &a.Hashes
	data := resize(to.Texts.Data, n*all)
	offsets, types := resize(to.Texts.Offsets, 3*n+1), resize(to.Types.Codes, 3*n)
	offsets[0] = 0
	for e := range n {
		at := e * all
		hashed := data[at : at+all]
		copy(hashed, h.md5[32*e:32*e+32])
		copy(hashed[32:], h.sha1[40*e:40*e+40])
		copy(hashed[72:], h.sha256[64*e:64*e+64])
		offsets[3*e+1], offsets[3*e+2], offsets[3*e+3] = int32(at+32), int32(at+72), int32(at+all)
		types[3*e], types[3*e+1], types[3*e+2] = md5Code, sha1Code, sha256Code
	}
	to.Texts, to.Types.Codes = resolution.Texts{Data: data, Offsets: offsets}, types
	for _, end := range a.Emails.Ends[min(1, len(a.Emails.Ends)):] {
		to.Ends = append(to.Ends, 3*end)
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
