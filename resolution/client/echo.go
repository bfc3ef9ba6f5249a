package client

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

// naming is what a text in an answer says about the question.
type naming uint8

const (
	namesNone    naming = iota // it says nothing that can be compared
	namesThis                  // it is this question
	namesAnother               // it is another one
)

// asked is a question that an answer is compared with. A nil one is named by nothing.
type asked struct {
	known  *Asked
	call   resolution.Call
	search *searchBody // of a Start
	id     string      // of a Poll
	named  bool        // the answer names the question
	sums   []string    // the digests of an email; see digests
}

func (q *asked) isPoll() bool { return q != nil && q.id != "" }

// isToldByCallback reports whether an answer that repeats the search, and no more, promises
// its result: the result is posted, under our reference.
func (q *asked) isToldByCallback() bool {
	return q != nil && q.named && q.search != nil && q.search.CallbackURL != ""
}

// misplaced returns an error if the answer names another question. An answer that
// names none says nothing, as one that repeats another field than the one that was sent.
func (e envelope) misplaced() error {
	q := e.answer.asked
	if q == nil || e.body == nil {
		return nil
	}
	switch q.namedBy(e.body, e.answer.header) {
	case namesAnother:
		return e.swapped("the answer names another question")
	case namesThis:
		q.named = true
	}
	return nil
}

// namedBy compares all that may name the question. A single thing that names another
// one outweighs the rest.
func (q *asked) namedBy(body jsontree.Value, h http.Header) naming {
	said := namesNone
	for _, payload := range []jsontree.Value{jsontree.Object(body.Get("payload")), jsontree.Object(jsontree.Object(body.Get("resolution")).Get("payload")), jsontree.Object(jsontree.Object(body.Get("data")).Get("payload"))} {
		said = max(said, q.namedByPayload(payload))
	}
	if q.call.Operation == resolution.KeywordToLeadCount && q.search != nil { // which repeats the fields beside the payload
		said = max(said, q.search.namedBy(body))
	}
	if q.isPoll() {
		for _, id := range []string{jsontree.Text(jsontree.Object(body.Get("resolution")).Get("id")), jsontree.Text(body.Get("resolution_id")), h.Get("X-Resolution-Id")} {
			said = max(said, sameID(q.id, id))
		}
	}
	return said
}

func (q *asked) namedByPayload(payload jsontree.Value) naming {
	ref := jsontree.Text(jsontree.Object(payload.Get("metadata")).Get("client_ref"))
	switch {
	case payload == nil:
		return namesNone
	case q.call.ClientRef != "" && (q.known.isOfAnother(ref, q.self()) || isOtherHash(q.call.ClientRef, ref)):
		return namesAnother
	case q.isPoll():
		return sameID(q.id, jsontree.Text(payload.Get("resolution_id")))
	case q.search != nil:
		return q.search.namedBy(payload)
	}
	kind := q.call.Operation.Identifier()
	return q.known.compare(kind, q.call.Key, jsontree.Text(payload.Get(string(kind))))
}

// isOtherHash reports whether two references are SHA-256 hashes, as those of questions
// are, and differ. The other question may be one that an earlier process asked.
func isOtherHash(mine, said string) bool {
	if mine == said || len(mine) != hex.EncodedLen(sha256.Size) || len(said) != len(mine) {
		return false
	}
	_, err := hex.DecodeString(said)
	return err == nil
}

// sameID compares ids of resolutions, which may lack their prefix.
func sameID(id, said string) naming {
	const prefix = "res_"
	switch {
	case said == "":
		return namesNone
	case strings.EqualFold(strings.TrimPrefix(id, prefix), strings.TrimPrefix(strings.TrimSpace(said), prefix)):
		return namesThis
	}
	return namesAnother
}

// namedBy compares the fields of a search that choose its leads. Fields that were not
// sent may have the default of the service.
func (s *searchBody) namedBy(m jsontree.Value) naming {
	said := namesNone
	for name, mine := range map[string][]string{
		"keywords": s.Keywords, "cities": s.Cities, "states": s.States, "zips": s.Zips,
		"job_title_inclusions": s.JobTitleInclusions, "job_title_exclusions": s.JobTitleExclusions,
	} {
		if v := m.Get(name); len(mine) > 0 && v.Kind() == '[' && len(v) > 1 {
			said = max(said, sameTexts(mine, v))
		}
	}
	for name, mine := range map[string]string{"lead_type": s.LeadType, "date_start": s.DateStart, "date_end": s.DateEnd} {
		if v := jsontree.Text(m.Get(name)); v != "" && !strings.HasPrefix(strings.ToLower(v), strings.ToLower(mine)) { // a date may have a time
			return namesAnother
		}
	}
	if page, is := exchange.Number(m.Get("page")); is && s.Page > 0 && page != float64(s.Page) {
		return namesAnother
	}
	return said
}

// sameTexts compares lists without regard to order, case and space.
func sameTexts(mine []string, said jsontree.Value) naming {
	var texts []string
	for v := range jsontree.List(said).All() {
		if v.Kind() != '"' {
			return namesNone
		}
		texts = append(texts, jsontree.Text(v))
	}
	if slices.Equal(folded(mine), folded(texts)) {
		return namesThis
	}
	return namesAnother
}

func folded(texts []string) []string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = strings.Join(strings.Fields(strings.ToLower(t)), " ")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// dataOf looks at whom the data of an answer are about. They may be about another
// address of the same person, as today's for a member id. They prove that answers were
// swapped only if that is another question of this run; else other says that they are
// under another address.
func (q *asked) dataOf(r resolution.AnswerRow) (swapped, other bool) {
	if q == nil {
		return false, false
	}
	switch q.call.Operation.Identifier() {
	case resolution.NetworkURL:
		said := string(r.Of.Texts[resolution.FieldNetworkURL].At(r.I))
		if q.known.compare(resolution.NetworkURL, q.call.Key, said) != namesAnother {
			return false, false
		}
		page, _ := q.known.profiles.Parse(said)
		renamed := q.named && (profile.IsMember(page.Key) || profile.IsMember(q.call.Key))
		return !renamed && q.known.isOfAnother(fold(page.Key), q.self()), true
	case resolution.Email:
		return q.digestsOf(r)
	}
	return false, false
}

// digestsOf is dataOf for the digests of an answer about an email.
func (q *asked) digestsOf(r resolution.AnswerRow) (swapped, other bool) {
	var hashes []string
	for n, to := r.Of.Hashes.Of(r.I); n < to; n++ {
		hashes = append(hashes, string(r.Of.Hashes.Texts.At(n)))
		if slices.Contains(q.digests(), hashes[len(hashes)-1]) {
			return false, false
		}
	}
	for _, hash := range hashes {
		switch q.known.compare(resolution.Email, q.call.Key, hash) {
		case namesThis:
			return false, false
		case namesAnother:
			other = true
			swapped = swapped || q.known.isOfAnother(hash, q.self())
		}
	}
	return swapped, other
}

// Asked knows what a run asks, and so to which question an answer belongs. It is safe
// from many goroutines.
type Asked struct {
	profiles profile.Rules
	seed     maphash.Seed

	mu sync.Mutex
	// recent and older are the last names of questions: digests of an email, a profile
	// address, a client reference, the id of a promised resolution. Both are hashes, and what is known is the question.
	recent, older map[uint64]uint64
}

// maxNames bounds each of the two maps of names, which take some 40 bytes each.
const maxNames = 1 << 18

// NewAsked makes an Asked. hosts are those of network profiles.
func NewAsked(hosts []string) *Asked {
	return &Asked{profiles: profile.Rules{Hosts: hosts}, seed: maphash.MakeSeed(), recent: map[uint64]uint64{}}
}

// Check reads an answer that comes after its call. The error, a *resolution.CallError,
// says that it is that to another question; other is resolution.About.OtherAddress.
func (k *Asked) Check(call resolution.Call, body []byte) (other bool, err error) {
	reply, err := read(answer{operation: call.Operation, status: http.StatusOK, body: body, asked: &asked{known: k, call: call}})
	if failed, is := err.(*resolution.CallError); is && failed.Swapped {
		return false, err
	}
	return reply.OtherAddress, nil
}

// self is the question as it is known.
func (q *asked) self() uint64 {
	return maphash.String(q.known.seed, string(q.call.Operation.Identifier())+"\x00"+q.call.Key+q.call.ClientRef)
}

// isPromisedOther reports whether an answer has the id of a resolution that was promised
// to another question: a promise, which would come for both, or a result.
func (q *asked) isPromisedOther(r resolution.Reply) bool {
	switch {
	case r.ID == "" || q.isPoll() || !r.Pending && q.search == nil:
		return false
	case q.known.isOfAnother(r.ID, q.self()):
		return true
	}
	if r.Pending {
		q.known.mu.Lock()
		defer q.known.mu.Unlock()
		q.known.addName(maphash.String(q.known.seed, r.ID), q.self())
	}
	return false
}

// register makes the names of a question known.
func (q *asked) register() {
	names := q.digests()
	if q.call.Operation.Identifier() == resolution.NetworkURL {
		names = []string{fold(q.call.Key)}
	}
	self := q.self()
	q.known.mu.Lock()
	defer q.known.mu.Unlock()
	for _, name := range names {
		q.known.addName(maphash.String(q.known.seed, name), self)
	}
	for _, name := range []string{q.call.ClientRef, q.id} {
		if name != "" {
			q.known.addName(maphash.String(q.known.seed, name), self)
		}
	}
}

// digests are those of a question about an email.
func (q *asked) digests() []string {
	if q.sums == nil && q.call.Operation.Identifier() == resolution.Email {
		if a, err := email.Parse([]byte(q.call.Key)); err == nil {
			q.sums = digests(a)
		}
	}
	return q.sums
}

// addName makes a name known. The caller holds the lock.
func (k *Asked) addName(name, question uint64) {
	if len(k.recent) >= maxNames {
		k.recent, k.older = map[uint64]uint64{}, k.recent
	}
	k.recent[name] = question
}

// isOfAnother reports whether a name is that of another question. A name that is met
// again stays known.
func (k *Asked) isOfAnother(name string, self uint64) bool {
	if name == "" {
		return false
	}
	hash := maphash.String(k.seed, name)
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

// compare compares the key of a question with an identifier in an answer.
func (k *Asked) compare(kind resolution.Identifier, key, said string) naming {
	switch {
	case said == "":
		return namesNone
	case said == key, kind == resolution.NetworkURL && exchange.WithoutScheme(said) == key:
		return namesThis
	}
	switch kind {
	case resolution.Email:
		return compareEmails(key, said)
	case resolution.NetworkURL:
		return k.compareProfiles(key, said)
	case resolution.IP:
		mine, err := ipaddr.Parse(key)
		theirs, err2 := ipaddr.Parse(said)
		switch {
		case err != nil || err2 != nil:
			return namesNone
		case mine == theirs:
			return namesThis
		}
		return namesAnother
	}
	return namesNone
}

// compareEmails compares addresses, and digests of them, by the forms of all profiles.
// Digests are compared if they are of one algorithm, and an address with stars by its
// visible letters.
func compareEmails(key, said string) naming {
	mine, err := email.Parse([]byte(key))
	if err != nil {
		return namesNone
	}
	theirs, err := email.Parse([]byte(said))
	if err != nil || strings.Contains(said, "*") && !strings.Contains(key, "*") {
		return namesNone
	}
	bothDigests := mine.Kind() != email.Plaintext && theirs.Kind() != email.Plaintext
	if bothDigests && mine.Kind() != theirs.Kind() {
		return namesNone
	}
	known := digests(mine)
	if slices.ContainsFunc(digests(theirs), func(d string) bool { return slices.Contains(known, d) }) {
		return namesThis
	}
	return namesAnother
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
func (k *Asked) compareProfiles(key, said string) naming {
	mine, err := k.profiles.Parse(key)
	if err != nil {
		return namesNone
	}
	theirs, err := k.profiles.Parse(said)
	if err != nil {
		return namesNone
	}
	a, query, _ := strings.Cut(fold(mine.Key), "?")
	b, query2, _ := strings.Cut(fold(theirs.Key), "?")
	if a == b && (isPart(query, query2) || isPart(query2, query)) {
		return namesThis
	}
	return namesAnother
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
