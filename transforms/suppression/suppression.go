// Package suppression knows who must not be in a dataset: people who opted out, by any
// spelling of their email, phone number, profile address or IP address.
//
// The one thing to know before using it: a Set always finds who is on its lists. It
// keeps the first 64 bits of digests, so it may find somebody who is not listed, with a
// probability of Len divided by 2^64: for 20 million entries once in a thousand billion
// look-ups.
package suppression

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/digestset"
	"github.com/leadetl/leadetl/internal/spreadsheet"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Kind is the kind of an identifier.
type Kind string

// The kinds. They are also the default names of columns of lists.
const (
	Email      Kind = "email"
	Phone      Kind = "phone"
	NetworkURL Kind = "network_url"
	IP         Kind = "ip"
	// Person is somebody without an identifier, known by name and company. No column has it alone.
	Person Kind = "person"
)

// Rules bring identifiers into canonical form. Use those of the run that a Set is for.
type Rules struct {
	// Region is that of phone numbers without a country code, such as US.
	Region   string
	Profiles profile.Rules
}

// algorithm is a hash function and the index of its digests in a Set.
type algorithm uint8

const (
	algMD5 algorithm = iota
	algSHA1
	algSHA256
	algorithms
)

// entry is a digest in a Set.
type entry struct {
	algorithm algorithm
	digest    uint64 // its first bits
}

// ofRow is the entry of a digest that only a row's digest is compared with: all digits of a listed
// number may be the last ten of another one.
func (e entry) ofRow() entry {
	e.digest ^= 1 << 63
	return e
}

// Set has the entries of lists. It is read only, and safe from any number of
// goroutines.
type Set struct {
	rules   Rules
	digests [algorithms]*digestset.Set
	// given says that lists have digests of an algorithm, not only plain
	// identifiers that were hashed.
	given       [algorithms]bool
	domains     bool // some entries are domains of addresses
	entries     int64
	fingerprint string
}

// Entries is the number of entries that the lists hold. One that is there twice
// counts twice.
func (s *Set) Entries() int64 { return s.entries }

// Len is the number of digests: one for a digest, a profile or an IP
// address, two for a phone number, and three or more for an email address.
func (s *Set) Len() (n int) {
	for _, d := range s.digests {
		n += d.Len()
	}
	return n
}

// Fingerprint is the same for lists with the same entries, in any order and any number
// of files.
func (s *Set) Fingerprint() string { return s.fingerprint }

// fingerprintOf is the SHA-256 of all digests in their order.
func fingerprintOf(digests [algorithms]*digestset.Set) string {
	h := sha256.New()
	buffer := make([]byte, 0, 1<<15)
	for algorithm, set := range digests {
		buffer = append(buffer, byte(algorithm))
		for d := range set.All() {
			if buffer = binary.BigEndian.AppendUint64(buffer, d); len(buffer) > cap(buffer)-8 {
				h.Write(buffer)
				buffer = buffer[:0]
			}
		}
	}
	h.Write(buffer)
	return hex.EncodeToString(h.Sum(nil))
}

// sum returns the entry of a text.
func (a algorithm) sum(text []byte) entry {
	switch a {
	case algMD5:
		sum := md5.Sum(text)
		return entry{a, binary.BigEndian.Uint64(sum[:])}
	case algSHA1:
		sum := sha1.Sum(text)
		return entry{a, binary.BigEndian.Uint64(sum[:])}
	}
	sum := sha256.Sum256(text)
	return entry{a, binary.BigEndian.Uint64(sum[:])}
}

// domainOf returns the entry of the domain of an address, of which the @ is a part.
func domainOf(a email.Address) entry {
	key := a.AppendKey(nil)
	return algSHA256.sum(key[bytes.LastIndexByte(key, '@'):])
}

// forms returns the distinct forms of an address that are hashed.
func forms(a email.Address) (all [][]byte) {
	for _, p := range email.Known {
		form, ok := a.AppendForm(nil, p)
		if !ok {
			continue
		}
		known := false
		for _, f := range all {
			known = known || string(f) == string(form)
		}
		if !known {
			all = append(all, form)
		}
	}
	return all
}

// squeeze returns a text without its white space. ok is false unless it has an @, and white space
// inside: California's lists have the digests of such addresses.
func squeeze(text string) (squeezed string, ok bool) {
	text = strings.TrimFunc(spreadsheet.Value(text), isSurrounding)
	if !strings.Contains(text, "@") || !strings.ContainsFunc(text, isSurrounding) {
		return "", false
	}
	return strings.Map(func(r rune) rune {
		if isSurrounding(r) {
			return -1
		}
		return r
	}, text), true
}

// phoneForms returns the forms of a number that may have been hashed: those of the number as it
// is written, as it is read, and as it was written before its plan changed.
func (r Rules) phoneForms(text string) (all []string) {
	add := func(n phone.Number) {
		for _, form := range []phone.Form{phone.E164, phone.Digits, phone.Last10} {
			if text := n.Form(form); !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	if n, err := phone.Parse(text, r.Region); err == nil {
		add(n)
		if before, ok := n.Before(); ok {
			add(before)
		}
	}
	if written := asWritten(text); len(written.E164) > minDigits {
		add(written)
	}
	return all
}

// asWritten returns all digits of a text as a number.
func asWritten(text string) phone.Number {
	digits := []byte{'+'}
	for i := range len(text) {
		if c := text[i]; '0' <= c && c <= '9' {
			digits = append(digits, c)
		}
	}
	return phone.Number{E164: string(digits)}
}

// addresses returns the addresses by which an IP address may be listed: itself, and for
// NAT64 the IPv4 address inside.
func addresses(a netip.Addr) []string {
	all := []string{a.String()}
	if inside, ok := ipaddr.LookupAddr(a); ok && inside != a {
		all = append(all, inside.String())
	}
	return all
}
