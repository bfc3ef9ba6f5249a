package embedded

import (
	"encoding/hex"
	"fmt"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/transforms/email"
)

// emailToHEM finds the profiles of the people who have the keys, and the hashes of the
// addresses behind digests.
func (b *batch) emailToHEM(of *resolution.Questions, to *resolution.Answers) error {
	to.Reset()
	keys := &of.Keys
	n, digests := keys.Len(), false
	to.Matched, to.Reasons = resize(to.Matched, n), resize(to.Reasons, n)
	clear(to.Reasons)
	for i := range n {
		key := keys.At(i)
		to.Matched[i] = len(key) > 0
		digests = digests || len(key) > 0 && !people.IsAddress(key)
		if of.Hashes && to.Matched[i] {
			if _, err := email.Parse(key); err != nil {
				return errNotEmail
			}
		}
	}
	switch {
	case digests || of.Hashes || b.engine.options.Listed != nil:
		b.start(keys)
		return b.emailPeople(keys, to, of.Hashes)
	case b.engine.directory == nil:
		return nil
	}
	b.hash(keys)
	return readable(b.engine.directory.AppendProfiles(keys, b.sums, &to.Texts[resolution.FieldNetworkURL].Texts))
}

// hash sets sums to the SHA-256 of the keys.
func (b *batch) hash(keys *resolution.Texts) {
	b.sums = resize(b.sums, 32*keys.Len())
	hashlanes.SHA256(b.sums, keys.Data, keys.Offsets)
}

// emailPeople is emailToHEM for keys of which some are digests, may be suppressed or are to be
// hashed.
func (b *batch) emailPeople(keys *resolution.Texts, to *resolution.Answers, hashes bool) error {
	if err := b.findByDigest(keys, b.part(people.Emails)); err != nil {
		return err
	}
	for i, key := range b.keys {
		person := &b.people[i].Person
		switch {
		case b.emails[i] != "" && b.engine.hides(person):
			to.Matched[i], b.reasons[i] = false, NotFound
		case key == "":
			to.Matched[i] = false
		case b.emails[i] != "":
			to.Texts[resolution.FieldNetworkURL].Set(i, []byte(person.NetworkURL))
			// A digest has the hashes of the address behind it; an address has
			// its own, also where the directory has no more of it than a digest.
			if b.addresses[i] == "" {
				key = b.emails[i]
			}
		}
		if to.Matched[i] && (hashes || b.addresses[i] == "") {
			if !people.IsAddress([]byte(key)) {
				to.Digests++
			}
			to.Emails.Put(i, []byte(key), nil)
		}
	}
	copy(to.Reasons, b.reasons)
	to.Emails.Pad(len(b.keys))
	b.hashes.lists(to)
	to.Emails.Reset(nil)
	return nil
}

var errNotEmail = fmt.Errorf("%w: the key is not an email", resolution.ErrInvalid)

// findByDigest sets people and emails to those with the keys, which b has too.
func (b *batch) findByDigest(keys *resolution.Texts, part people.Fields) error {
	n := len(b.keys)
	b.addresses, b.digests, b.emails, b.people = resize(b.addresses, n), resize(b.digests, n), resize(b.emails, n), resize(b.people, n)
	clear(b.addresses)
	clear(b.digests)
	clear(b.emails)
	if b.engine.directory == nil {
		for i, key := range b.keys {
			if people.IsAddress([]byte(key)) {
				b.addresses[i] = key
			}
		}
		return nil
	}
	b.hash(keys)
	for i, key := range b.keys {
		sum := b.sums[32*i : 32*i+32]
		switch {
		case key == "":
			continue
		case people.IsAddress([]byte(key)):
			b.addresses[i] = key
		case hex.DecodedLen(len(key)) > len(sum):
			return errNotEmail
		default:
			size, err := hex.Decode(sum, []byte(key))
			if err != nil {
				return errNotEmail
			}
			sum = sum[:size]
		}
		b.digests[i] = text(sum)
	}
	return readable(b.engine.directory.FillPeopleByDigest(b.digests, b.addresses, &b.arena, b.people, b.emails, part))
}
