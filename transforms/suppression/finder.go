package suppression

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"sync"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Finder looks up people in a Set. Its methods are safe from any goroutine, except
// Emails and Found, which one goroutine may call at a time.
type Finder struct {
	set *Set
	// found are the entries that were found; nil if they are not remembered.
	mu    sync.Mutex
	found Found

	// For Emails:
	forms texts
	rows  []int // of forms
	sums  [algorithms][]byte
	asked [algorithms]questions
	hits  []bool
}

// texts has strings in the layout of an Arrow string array.
type texts struct {
	data    []byte
	offsets []int32
}

// questions are digests to look up, each for a row.
type questions struct {
	digests []uint64
	rows    []int
}

func (q *questions) add(digest uint64, row int) {
	q.digests, q.rows = append(q.digests, digest), append(q.rows, row)
}

// Finder returns a Finder that remembers nothing.
func (s *Set) Finder() *Finder { return &Finder{set: s} }

// RememberingFinder returns a Finder that remembers which entries it found.
func (s *Set) RememberingFinder() *Finder { return &Finder{set: s, found: Found{}} }

// Found returns the entries that a remembering Finder has found so far. Do not look up
// anything at the same time.
func (f *Finder) Found() Found { return f.found }

// has looks up an entry.
func (f *Finder) has(e entry) bool {
	if !f.set.digests[e.algorithm].Has(e.digest) {
		return false
	}
	if f.found != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.found[e] = struct{}{}
	}
	return true
}

// hasOfRow looks up a row's digest, which may be of a phone number.
func (f *Finder) hasOfRow(e entry) bool {
	listed := f.has(e)
	return f.has(e.ofRow()) || listed
}

// hasDomain looks up the domain of an address that is not a digest.
func (f *Finder) hasDomain(a email.Address) bool {
	return f.set.domains && a.Kind() == email.Plaintext && f.has(domainOf(a))
}

// hasAny looks up all digests of a text, so that each is remembered.
func (f *Finder) hasAny(text []byte) (any bool) {
	for a := range algorithms {
		if f.hashes(a) && f.has(a.sum(text)) {
			any = true
		}
	}
	return any
}

// Lists reports whether an identifier is listed: an email address or a digest of one,
// a phone number, a profile address or an IP address; of several in a text, whether one is.
// Text that cannot be read is not listed.
func (f *Finder) Lists(kind Kind, text string) (listed bool) {
	if kind == NetworkURL && person.IsKey(text) {
		return f.Person(text)
	}
	for _, value := range Values(kind, text) {
		listed = f.listsOne(kind, value) || listed
	}
	return listed
}

func (f *Finder) listsOne(kind Kind, text string) (listed bool) {
	switch kind {
	case Email:
		if e, ok := parseDigest(text); ok {
			return f.has(e)
		}
		a, err := email.Read([]byte(text))
		if err == nil {
			listed = f.hasAddress(a)
		}
		if squeezed, ok := squeeze(text); ok {
			listed = f.squeezed(squeezed) || listed
		}
	case Phone:
		if e, ok := parseDigest(text); ok {
			return f.hasOfRow(e)
		}
		for _, form := range f.set.rules.phoneForms(text) {
			if f.hasAny([]byte(form)) {
				listed = true
			}
		}
	case NetworkURL:
		key, err := f.set.rules.Profiles.ParsePerson(text)
		return err == nil && f.ProfileKey([]byte(key))
	case IP:
		a, err := ipaddr.Read(text)
		return err == nil && f.Address(a)
	}
	return listed
}

// hasAddress looks up all forms of an address, and its domain.
func (f *Finder) hasAddress(a email.Address) (listed bool) {
	for _, form := range forms(a) {
		listed = f.hasAny(form) || listed
	}
	return f.hasDomain(a) || listed
}

// squeezed looks up what is left of an address without its white space: in lower case, whether
// or not it is an address, and the address that it is.
func (f *Finder) squeezed(text string) (listed bool) {
	listed = f.hasAny([]byte(strings.ToLower(text)))
	if a, err := email.Read([]byte(text)); err == nil {
		listed = f.hasAddress(a) || listed
	}
	return listed
}

// Names reports whether any text is a listed identifier. Its form decides on its kind,
// as in Builder.Add.
func (f *Finder) Names(text string) (named bool) {
	if e, ok := parseDigest(strings.TrimFunc(text, isSurrounding)); ok {
		return f.hasOfRow(e)
	}
	if strings.Contains(text, "@") {
		named = f.Lists(Email, text)
	}
	if strings.Contains(text, "/") || person.IsKey(text) {
		named = f.Lists(NetworkURL, text) || named
	}
	return named || f.Lists(IP, text) || countDigits(text) >= minDigits && f.Lists(Phone, text)
}

// Person reports whether the person with a key of person.Key is listed, by name and company or by email, or the key is
// by its digest.
func (f *Finder) Person(key string) (listed bool) {
	listed = f.hasAny([]byte(key))
	values := person.Values(key)
	for _, form := range person.Forms(values) {
		listed = f.has(algSHA256.sum([]byte(form))) || listed
	}
	return f.Lists(Email, values[person.Email]) || listed
}

// ProfileKey is Lists for the key of a profile. It also looks for the key without its query.
func (f *Finder) ProfileKey(key []byte) bool {
	listed := f.hasAny(key)
	if bytes.IndexByte(key, '?') < 0 {
		return listed
	}
	page, _ := profile.WithoutQuery(string(key))
	return f.hasAny([]byte(page)) || listed
}

// Address is Lists for an IP address.
func (f *Finder) Address(a netip.Addr) (listed bool) {
	for _, text := range addresses(a) {
		if f.hasAny([]byte(text)) {
			listed = true
		}
	}
	return listed
}

// Emails reports for each row of a column whether its address is listed. keys has
// their keys in the layout of an Arrow string array; a row without a key is not listed.
// The result is valid until the next call.
func (f *Finder) Emails(addresses []email.Address, keys []byte, offsets []int32) []bool {
	n := len(offsets) - 1
	f.hits = append(f.hits[:0], make([]bool, n)...)
	f.forms.data, f.forms.offsets = f.forms.data[:0], append(f.forms.offsets[:0], 0)
	f.rows = f.rows[:0]
	for a := range f.asked {
		f.asked[a].digests, f.asked[a].rows = f.asked[a].digests[:0], f.asked[a].rows[:0]
	}
	f.hash(keys, offsets)
	for i := range n {
		if offsets[i] == offsets[i+1] {
			continue
		}
		if a := addresses[i]; a.Kind() != email.Plaintext {
			d, _ := email.ParseDigest(keys[offsets[i]:offsets[i+1]]) // the key of a digest is one
			e := entryOf(d)
			f.asked[e.algorithm].add(e.digest, i)
		} else {
			f.askSums(i, i)
			f.hits[i] = f.hasDomain(a)
			if !a.OneForm() {
				f.otherForms(i, a, keys[offsets[i]:offsets[i+1]])
			}
		}
	}
	f.hash(f.forms.data, f.forms.offsets)
	for j, i := range f.rows {
		f.askSums(j, i)
	}
	f.answer()
	return f.hits
}

// askSums asks for row i by the digests of message j that hash computed.
func (f *Finder) askSums(j, i int) {
	for a, all := range f.sums {
		if all != nil {
			f.asked[a].add(binary.BigEndian.Uint64(all[j*digestLen[a]:]), i)
		}
	}
}

// answer sets the hits of the rows that are asked for.
func (f *Finder) answer() {
	for a := range f.asked {
		digests, rows := f.asked[a].digests, f.asked[a].rows
		for from := 0; from < len(digests); from += prefetched {
			to := min(from+prefetched, len(digests))
			f.set.digests[a].Prefetch(digests[from:to])
			for i := from; i < to; i++ {
				if f.has(entry{algorithm(a), digests[i]}) {
					f.hits[rows[i]] = true
				}
			}
		}
	}
}

// prefetched is how many digests are looked up at a time.
const prefetched = 64

// otherForms collects the forms of an address other than its key.
func (f *Finder) otherForms(i int, a email.Address, key []byte) {
	for _, p := range email.Known[1:] {
		start := len(f.forms.data)
		form, ok := a.AppendForm(f.forms.data, p)
		if !ok || bytes.Equal(form[start:], key) {
			f.forms.data = form[:start]
			continue
		}
		f.forms.data = form
		f.forms.offsets = append(f.forms.offsets, int32(len(form)))
		f.rows = append(f.rows, i)
	}
}

// digestLen is the number of bytes of a digest.
var digestLen = [algorithms]int{16, 20, 32}

// hash computes the digests by which addresses may be listed.
func (f *Finder) hash(data []byte, offsets []int32) {
	n := len(offsets) - 1
	for i := range f.sums {
		if !f.hashes(algorithm(i)) {
			f.sums[i] = nil
			continue
		}
		if cap(f.sums[i]) < n*digestLen[i] || f.sums[i] == nil {
			f.sums[i] = make([]byte, n*digestLen[i])
		}
		f.sums[i] = f.sums[i][:n*digestLen[i]]
	}
	hashlanes.Sum(f.sums[algMD5], f.sums[algSHA1], f.sums[algSHA256], data, offsets)
}

// hashes reports whether a text may be listed by its digest of an algorithm: lists have
// such digests, or plain entries are stored by it.
func (f *Finder) hashes(a algorithm) bool { return f.set.given[a] || a == algSHA256 }
