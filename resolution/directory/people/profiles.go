package people

import (
	"bytes"
	"encoding/hex"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// AppendProfiles appends to profiles, for each address in canonical form, the NetworkURL of
// the person who has it, empty without one. sums are the SHA-256 of the addresses, raw and end
// to end. It skips empty addresses. It reads the records where they are in the file: an Entry
// for each address took most of the time. Call it under keyed.Guard.
func (f *File) AppendProfiles(addresses *resolution.Texts, sums []byte, profiles *resolution.Texts) {
	var hashes [together]keyed.Hash
	var rows [together]uint32
	for from := 0; from < addresses.Len(); from += together {
		n := min(together, addresses.Len()-from)
		for i := range n {
			hashes[i] = keyed.HashOfBytes(sums[32*(from+i) : 32*(from+i+1)])
		}
		f.digests.FirstRows(hashes[:n], rows[:n])
		f.Touch(rows[:n], 0, partLines)
		for i, row := range rows[:n] {
			if address := addresses.At(from + i); row != keyed.None && len(address) > 0 {
				profiles.Data = append(profiles.Data, f.profileOf(address, sums[32*(from+i):32*(from+i+1)], hashes[i], row)...)
			}
			profiles.End()
		}
	}
}

// profileOf returns the NetworkURL of the person who has an address, or its SHA-256 in its
// place; nil without one. first is the first row that may have it.
func (f *File) profileOf(address, sum []byte, h keyed.Hash, first uint32) []byte {
	if url, found := f.hasEmail(first, address, sum); found {
		return url
	}
	for row := range f.digests.Rows(h) {
		if url, found := f.hasEmail(row, address, sum); found && row != first {
			return url
		}
	}
	return nil
}

// hasEmail returns the NetworkURL of a row, and whether it has the address or its SHA-256.
func (f *File) hasEmail(row uint32, address, sum []byte) (url []byte, found bool) {
	r := f.Fields(row)
	_, url = r.Next()
	r.Skip(emails - 1)
	_, list := r.Next()
	for len(list) > 0 {
		var key []byte
		key, list, _ = bytes.Cut(list, []byte{';'})
		if bytes.Equal(key, address) || len(key) == hex.EncodedLen(len(sum)) && string(key) == hex.EncodeToString(sum) {
			return url, true
		}
	}
	return nil, false
}
