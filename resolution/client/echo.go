package client

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// asked is a question that an answer is compared with. A nil one is named by nothing.
type asked struct {
	exchange.Question
	call   resolution.Call
	search *searchBody // of a Start
	id     string      // of a Poll
	named  bool        // the answer names the question
}

// questionOf is the question of a call.
func questionOf(known *exchange.Asked, call resolution.Call) *asked {
	return &asked{Question: known.Question(call.Operation.Identifier(), call.Key, call.ClientRef), call: call}
}

// register makes the question known.
func (q *asked) register() { q.Register(q.id) }

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
	case exchange.NamesAnother:
		return e.swapped("the answer names another question")
	case exchange.NamesThis:
		q.named = true
	}
	return nil
}

// namedBy compares all that may name the question. A single thing that names another
// one outweighs the rest.
func (q *asked) namedBy(body jsontree.Value, h http.Header) exchange.Naming {
	said := exchange.NamesNone
	for _, payload := range []jsontree.Value{jsontree.Object(body.Get("payload")), jsontree.Object(jsontree.Object(body.Get("resolution")).Get("payload")), jsontree.Object(jsontree.Object(body.Get("data")).Get("payload"))} {
		said = max(said, q.namedByPayload(payload))
	}
	if q.call.Operation.Gives() == resolution.GivesCount && q.search != nil { // which repeats the fields beside the payload
		said = max(said, q.search.namedBy(body))
	}
	if q.isPoll() {
		for _, id := range []string{jsontree.Text(jsontree.Object(body.Get("resolution")).Get("id")), jsontree.Text(body.Get("resolution_id")), h.Get("X-Resolution-Id")} {
			said = max(said, sameID(q.id, id))
		}
	}
	return said
}

func (q *asked) namedByPayload(payload jsontree.Value) exchange.Naming {
	ref := jsontree.Text(jsontree.Object(payload.Get("metadata")).Get("client_ref"))
	switch {
	case payload == nil:
		return exchange.NamesNone
	case q.call.ClientRef != "" && (q.IsAnother(ref) || isOtherHash(q.call.ClientRef, ref)):
		return exchange.NamesAnother
	case q.isPoll():
		return sameID(q.id, jsontree.Text(payload.Get("resolution_id")))
	case q.search != nil:
		return q.search.namedBy(payload)
	}
	said, _ := q.Says(jsontree.Text(payload.Get(string(q.call.Operation.Identifier()))))
	return said
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
func sameID(id, said string) exchange.Naming {
	const prefix = "res_"
	switch {
	case said == "":
		return exchange.NamesNone
	case strings.EqualFold(strings.TrimPrefix(id, prefix), strings.TrimPrefix(strings.TrimSpace(said), prefix)):
		return exchange.NamesThis
	}
	return exchange.NamesAnother
}

// namedBy compares the fields of a search that choose its leads. Fields that were not
// sent may have the default of the service.
func (s *searchBody) namedBy(m jsontree.Value) exchange.Naming {
	said := exchange.NamesNone
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
			return exchange.NamesAnother
		}
	}
	if page, is := exchange.Number(m.Get("page")); is && s.Page > 0 && page != float64(s.Page) {
		return exchange.NamesAnother
	}
	return said
}

// sameTexts compares lists without regard to order, case and space.
func sameTexts(mine []string, said jsontree.Value) exchange.Naming {
	var texts []string
	for v := range jsontree.List(said).All() {
		if v.Kind() != '"' {
			return exchange.NamesNone
		}
		texts = append(texts, jsontree.Text(v))
	}
	if slices.Equal(folded(mine), folded(texts)) {
		return exchange.NamesThis
	}
	return exchange.NamesAnother
}

func folded(texts []string) []string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = strings.Join(strings.Fields(strings.ToLower(t)), " ")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// dataOf looks at whom the data of an answer are about; see exchange.Question.Profile.
func (q *asked) dataOf(r resolution.AnswerRow) (swapped, other bool) {
	if q == nil {
		return false, false
	}
	if q.call.Operation.Identifier() == resolution.Email {
		return q.digestsOf(r)
	}
	return q.Profile(string(r.Of.Texts[resolution.FieldNetworkURL].At(r.I)), q.named)
}

// digestsOf is dataOf for the digests of an answer about an email.
func (q *asked) digestsOf(r resolution.AnswerRow) (swapped, other bool) {
	var hashes []string
	for n, to := r.Of.Hashes.Of(r.I); n < to; n++ {
		hashes = append(hashes, string(r.Of.Hashes.Texts.At(n)))
		if slices.Contains(q.Names(), hashes[len(hashes)-1]) {
			return false, false
		}
	}
	for _, hash := range hashes {
		switch said, asked := q.Says(hash); said {
		case exchange.NamesThis:
			return false, false
		case exchange.NamesAnother:
			other, swapped = true, swapped || asked
		}
	}
	return swapped, other
}

// CheckerOf returns what reads an answer that comes after its call. The error, a *resolution.CallError,
// says that it is that to another question; other is resolution.About.OtherAddress.
func CheckerOf(known *exchange.Asked) func(call resolution.Call, body []byte) (other bool, err error) {
	return func(call resolution.Call, body []byte) (other bool, err error) {
		reply, err := read(response{operation: call.Operation, status: http.StatusOK, body: body, asked: questionOf(known, call)})
		if failed, is := err.(*resolution.CallError); is && failed.Swapped {
			return false, err
		}
		return reply.OtherAddress, nil
	}
}

// isPromisedOther reports whether an answer has the id of a resolution that was promised
// to another question: a promise, which would come for both, or a result.
func (q *asked) isPromisedOther(r resolution.Reply) bool {
	switch {
	case r.ID == "" || q.isPoll() || !r.Pending && q.search == nil:
		return false
	case q.IsAnother(r.ID):
		return true
	}
	if r.Pending {
		q.Register(r.ID)
	}
	return false
}
