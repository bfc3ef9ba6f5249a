package people

import "github.com/leadetl/leadetl/resolution/directory/records"

// together is how many keys are looked up at a time.
const together = 256

// FillAll fills the entries of the profile keys of people, and sets found. It skips empty
// keys. Call it under columnfile.Guard.
func (f *File) FillAll(keys []string, arena *records.Arena, entries []Entry, found []bool) {
	var rows [together]uint32
	for len(keys) > 0 {
		n := min(together, len(keys))
		f.FindAll(keys[:n], rows[:n])
		for i, row := range rows[:n] {
			if found[i] = row != records.None; found[i] {
				f.Fill(row, arena, &entries[i])
			}
		}
		keys, entries, found = keys[n:], entries[n:], found[n:]
	}
}

// FillAllByDigest fills the entries of the raw digests of people's emails, and sets emails
// to those emails. addresses are those of the digests, "" if unknown. It skips empty
// digests. If brief is set, entries have no more than NetworkURL and EmailKeys. Call it
// under columnfile.Guard.
func (f *File) FillAllByDigest(digests, addresses []string, arena *records.Arena, entries []Entry, emails []string, brief bool) {
	var hashes [together]records.Hash
	var rows [together]uint32
	for len(digests) > 0 {
		n := min(together, len(digests))
		for i, digest := range digests[:n] {
			hashes[i] = records.HashOf(digest)
		}
		f.digests.FirstRows(hashes[:n], rows[:n])
		f.Touch(rows[:n])
		for i, row := range rows[:n] {
			if row != records.None && digests[i] != "" {
				emails[i] = f.fillByDigest(digests[i], addresses[i], hashes[i], arena, &entries[i], brief)
			}
		}
		digests, addresses, entries, emails = digests[n:], addresses[n:], entries[n:], emails[n:]
	}
}

// fillByDigest fills an entry with the person who has an email with the digest, and returns
// that email; "" without one. See FillAllByDigest for brief.
func (f *File) fillByDigest(digest, address string, h records.Hash, arena *records.Arena, e *Entry, brief bool) (email string) {
	for row := range f.digests.Rows(h) {
		f.fillKeys(row, arena, e)
		at := e.Person.emailOf(digest, address)
		if at < 0 {
			continue
		}
		email = e.Person.EmailKeys[at]
		if !brief {
			f.Fill(row, arena, e)
		}
		return email
	}
	return ""
}

// fillKeys fills the NetworkURL and EmailKeys of an entry.
func (f *File) fillKeys(row uint32, arena *records.Arena, e *Entry) {
	var t [2]string
	f.Pick(row, arena, []int{networkURL, emails}, t[:])
	e.keys = e.keys[:0]
	for key := range members(t[1]) {
		e.keys = append(e.keys, key)
	}
	e.Person = Person{NetworkURL: t[0], EmailKeys: e.keys}
}
