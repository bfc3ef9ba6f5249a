package exchange

import (
	"encoding/hex"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Naming is what a text in an answer says about the question.
type Naming uint8

// The namings. What names another question outweighs the rest.
const (
	NamesNone    Naming = iota // it says nothing that can be compared
	NamesThis                  // it is this question
	NamesAnother               // it is another one
)

// Asked knows what a run asks, and so to which question an answer belongs. It is safe
// from many goroutines.
type Asked struct {
	profiles profile.Rules
	seed     maphash.Seed

	mu sync.Mutex
	// recent and older are the last names of questions: digests of an email, another identifier in
	// canonical form, a client reference, the id of a promised resolution. Both are hashes, and what is known is the question.
	recent, older map[uint64]uint64
}

// maxNames bounds each of the two maps of names, which take some 40 bytes each.
const maxNames = 1 << 18

// NewAsked makes an Asked. hosts are those of network profiles.
func NewAsked(hosts []string) *Asked {
	return &Asked{profiles: profile.Rules{Hosts: hosts}, seed: maphash.MakeSeed(), recent: map[uint64]uint64{}}
}

// Question is one that answers are compared with. It is used by one goroutine at a time.
type Question struct {
	asked *Asked
	kind  resolution.Identifier
	key   string // "" if it is not known
	ref   string // a client reference, "" without one
	names []string
}

// Question is the question about a key of a kind. ref is its client reference, "" if it has none.
func (k *Asked) Question(kind resolution.Identifier, key, ref string) Question {
	return Question{asked: k, kind: kind, key: key, ref: ref}
}

// Expect makes known what is going to be asked: answers to the first questions may name the next.
func (k *Asked) Expect(kind resolution.Identifier, keys []string) {
	for _, key := range keys {
		q := k.Question(kind, key, "")
		q.Register()
	}
}

// Key is what is asked about, "" if that is not known.
func (q *Question) Key() string { return q.key }

// self is the question as it is known, whoever is asked.
func (q *Question) self() uint64 {
	if q.key == "" {
		return maphash.String(q.asked.seed, q.ref)
	}
	return maphash.String(q.asked.seed, string(q.kind)+"\x00"+q.key)
}

// Register makes the names of the question known, and more of them.
func (q *Question) Register(more ...string) {
	names, self := q.Names(), q.self()
	q.asked.mu.Lock()
	defer q.asked.mu.Unlock()
	for _, all := range [...][]string{names, {q.ref}, more} {
		for _, name := range all {
			if name != "" {
				q.asked.addName(maphash.String(q.asked.seed, name), self)
			}
		}
	}
}

// Names are those of the key; see Asked.Names.
func (q *Question) Names() []string {
	if q.names == nil && q.key != "" {
		q.names = q.asked.Names(q.kind, q.key)
	}
	return q.names
}

// NamesOf are the names of a text of the same kind; see Asked.Names.
func (q *Question) NamesOf(text string) []string { return q.asked.Names(q.kind, text) }

// IsAnother reports whether a name is that of another question. A name that is met again stays
// known.
func (q *Question) IsAnother(name string) bool {
	if name == "" {
		return false
	}
	k, hash, self := q.asked, maphash.String(q.asked.seed, name), q.self()
	k.mu.Lock()
	defer k.mu.Unlock()
	question, known := k.recent[hash]
	if !known {
		if question, known = k.older[hash]; known {
			k.addName(hash, question)
		}
	}
	return known && question != self
}

// Says compares a text in an answer with the key of the question. asked says that it is the key of
// another question of the run.
func (q *Question) Says(text string) (said Naming, asked bool) {
	if q.key == "" {
		return NamesNone, false
	}
	if said = q.asked.compare(q.kind, q.key, text); said != NamesAnother {
		return said, false
	}
	return said, slices.ContainsFunc(q.NamesOf(text), q.IsAnother)
}

// Profile compares the address of a profile in the data of an answer with the key of the question. It
// may be another one of the same person, as today's for a member id: it proves that answers were
// swapped only if it is another question of this run. named says that the answer names this question
// beside it. other says that the data are under another address.
func (q *Question) Profile(address string, named bool) (swapped, other bool) {
	if q.kind != resolution.NetworkURL || address == "" {
		return false, false
	}
	said, asked := q.Says(address)
	if said != NamesAnother {
		return false, false
	}
	page, _ := q.asked.profiles.Parse(address)
	renamed := named && (profile.IsMember(page.Key) || profile.IsMember(q.key))
	return asked && !renamed, true
}

// addName makes a name known. The caller holds the lock.
func (k *Asked) addName(name, question uint64) {
	if len(k.recent) >= maxNames {
		k.recent, k.older = map[uint64]uint64{}, k.recent
	}
	k.recent[name] = question
}

// Names are the names under which a key is known: the digests of an email, and else its Form; none
// for a text of another kind.
func (k *Asked) Names(kind resolution.Identifier, text string) []string {
	if kind == resolution.Email {
		if a, err := email.Read([]byte(text)); err == nil {
			return digests(a)
		}
		return nil
	}
	if form := k.Form(kind, text); form != "" {
		return []string{form}
	}
	return nil
}

// maxIdentifier bounds a text that is read as an identifier, in bytes.
const maxIdentifier = 2048

// Form is the one spelling of an identifier, in which case does not matter; "" for a text of another
// kind.
func (k *Asked) Form(kind resolution.Identifier, text string) string {
	if len(text) > maxIdentifier {
		return ""
	}
	switch kind {
	case resolution.Email:
		if a, err := email.Read([]byte(text)); err == nil {
			return string(a.AppendKey(nil))
		}
	case resolution.NetworkURL:
		if page, err := k.profiles.Parse(text); err == nil {
			return fold(page.Key)
		}
	case resolution.IP:
		if a, err := ipaddr.Parse(text); err == nil {
			return a.String()
		}
	case resolution.Phone:
		if n, err := phone.Parse(text, ""); err == nil {
			return n.E164
		}
	}
	return ""
}

// compare compares the key of a question with an identifier in an answer.
func (k *Asked) compare(kind resolution.Identifier, key, said string) Naming {
	switch {
	case said == "":
		return NamesNone
	case said == key, kind == resolution.NetworkURL && WithoutScheme(said) == key:
		return NamesThis
	}
	switch kind {
	case resolution.Email:
		return compareEmails(key, said)
	case resolution.NetworkURL:
		return k.compareProfiles(key, said)
	case resolution.IP, resolution.Phone:
		mine, theirs := k.Form(kind, key), k.Form(kind, said)
		switch {
		case mine == "" || theirs == "":
			return NamesNone
		case mine == theirs:
			return NamesThis
		}
		return NamesAnother
	}
	return NamesNone
}

// compareEmails compares addresses, and digests of them, by the forms of all profiles.
// Digests are compared if they are of one algorithm, and an address with stars by its
// visible letters.
func compareEmails(key, said string) Naming {
	mine, err := email.Read([]byte(key))
	if err != nil {
		return NamesNone
	}
	theirs, err := email.Read([]byte(said))
	if err != nil || strings.Contains(said, "*") && !strings.Contains(key, "*") {
		return NamesNone
	}
	bothDigests := mine.Kind() != email.Plaintext && theirs.Kind() != email.Plaintext
	if bothDigests && mine.Kind() != theirs.Kind() {
		return NamesNone
	}
	known := digests(mine)
	if slices.ContainsFunc(digests(theirs), func(d string) bool { return slices.Contains(known, d) }) {
		return NamesThis
	}
	return NamesAnother
}

// digests are the digests of an address by all profiles, or the digest that it is.
func digests(a email.Address) (all []string) {
	if a.Kind() != email.Plaintext {
		return []string{string(a.AppendKey(nil))}
	}
	profiles := email.Known
	if a.OneForm() {
		profiles = profiles[:1]
	}
	var forms [][]byte
	for _, p := range profiles {
		form, ok := a.AppendForm(nil, p)
		if !ok || slices.ContainsFunc(forms, func(f []byte) bool { return string(f) == string(form) }) {
			continue
		}
		forms = append(forms, form)
		sums := email.Sum(form)
		all = append(all, hex.EncodeToString(sums.MD5[:]), hex.EncodeToString(sums.SHA1[:]), hex.EncodeToString(sums.SHA256[:]))
	}
	return all
}

// compareProfiles compares addresses without regard to case. Outside the network one of
// them may lack parameters of the query.
func (k *Asked) compareProfiles(key, said string) Naming {
	theirs, err := k.profiles.Parse(said)
	if err != nil {
		return NamesNone
	}
	mine, err := k.profiles.Parse(key)
	if err != nil {
		return NamesNone
	}
	a, query, _ := strings.Cut(fold(mine.Key), "?")
	b, query2, _ := strings.Cut(fold(theirs.Key), "?")
	if a == b && (isPart(query, query2) || isPart(query2, query)) {
		return NamesThis
	}
	return NamesAnother
}

// isPart reports whether all parameters of a query are among those of another one.
func isPart(query, of string) bool {
	all := strings.Split(of, "&")
	for parameter := range strings.SplitSeq(query, "&") {
		if parameter != "" && !slices.Contains(all, parameter) {
			return false
		}
	}
	return true
}

func fold(key string) string { return strings.ToLower(key) }
