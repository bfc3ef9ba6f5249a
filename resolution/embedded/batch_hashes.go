package embedded

import (
	"iter"
	"strings"
	"unsafe"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
)

// hashes makes the hashed emails of many leads, all addresses at once.
type hashes struct {
	emails  []leadEmail // in the order of the leads
	data    []byte      // the addresses end to end
	offsets []int32
	md5     []byte // in hex
	sha1    []byte
	sha256  []byte
	list    []resolution.HashedEmail
}

// leadEmail is an email of a lead: address n or a digest.
type leadEmail struct {
	lead, n int
	digest  string // lower-case hex, "" for an address
}

func (h *hashes) reset() {
	h.emails, h.data, h.offsets = h.emails[:0], h.data[:0], append(h.offsets[:0], 0)
}

// add adds emails of a lead, addresses or digests in canonical form.
func (h *hashes) add(lead int, keys ...string) {
	for _, key := range keys {
		if !strings.Contains(key, "@") {
			h.emails = append(h.emails, leadEmail{lead: lead, digest: key})
			continue
		}
		h.emails = append(h.emails, leadEmail{lead: lead, n: len(h.offsets) - 1})
		h.data = append(h.data, key...)
		h.offsets = append(h.offsets, int32(len(h.data)))
	}
}

// all yields the leads with their hashed emails: md5, sha1 and sha256 of an address, or the
// digest itself. They are valid until the next call.
func (h *hashes) all() iter.Seq2[int, []resolution.HashedEmail] {
	n := len(h.offsets) - 1
	h.md5, h.sha1, h.sha256 = resize(h.md5, 32*n), resize(h.sha1, 40*n), resize(h.sha256, 64*n)
	hashlanes.Hex(h.md5, h.sha1, h.sha256, h.data, h.offsets)
	h.list = resize(h.list, 2*n+len(h.emails))[:0]
	return func(yield func(int, []resolution.HashedEmail) bool) {
		for i := 0; i < len(h.emails); {
			lead, from := h.emails[i].lead, len(h.list)
			for ; i < len(h.emails) && h.emails[i].lead == lead; i++ {
				e := h.emails[i]
				if e.digest != "" {
					h.list = append(h.list, resolution.HashedEmail{Email: e.digest, Type: digestType(e.digest)})
					continue
				}
				h.list = append(h.list,
					resolution.HashedEmail{Email: text(h.md5[32*e.n : 32*e.n+32]), Type: email.MD5.String()},
					resolution.HashedEmail{Email: text(h.sha1[40*e.n : 40*e.n+40]), Type: email.SHA1.String()},
					resolution.HashedEmail{Email: text(h.sha256[64*e.n : 64*e.n+64]), Type: email.SHA256.String()})
			}
			if !yield(lead, h.list[from:len(h.list):len(h.list)]) {
				return
			}
		}
	}
}

// digestType names the algorithm of a digest in hex.
func digestType(digest string) string {
	switch len(digest) {
	case 32:
		return email.MD5.String()
	case 40:
		return email.SHA1.String()
	}
	return email.SHA256.String()
}

// text returns bytes as a string, which is valid until they change.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
