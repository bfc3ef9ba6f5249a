package client

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

// FuzzReader: a Reader that knows companies reads what Read reads, also when it
// reads an answer again, behind the answers of before.
func FuzzReader(f *testing.F) {
	for _, op := range []resolution.Operation{resolution.IPToCompany, resolution.Enrichment, resolution.KeywordToLead} {
		for _, s := range []string{
			enrichmentAnswer, hemAnswer, `{"data":true,"lead":{"company":{"name":"A\u00e9","industry":"I","year_founded":"1987"}}}`,
			`{"data":true,"lead":{"company":{}}}`, `{"data":{"name":" A ","network_url":"HTTPS://a.example"}}`, `{"data":true,"lead":{"company":{"name":1}},"lead":{"company":{"name":2}}}`,
			`{"status":"completed","lead":{"leads":[{"company":{"name":"A"}},{"company":{"name":"A"}},{"company":{"name":"B"}}]}}`, "{\"data\":true,\"lead\":{\"company\":{\"name\":\"\xff\"}}}",
		} {
			f.Add(string(op), []byte(s))
		}
	}
	var reader Reader // for every answer
	into := resolution.NewAnswers()
	f.Fuzz(func(t *testing.T, op string, body []byte) {
		read := func(by func(resolution.Operation, int, []byte, *resolution.Answers) (resolution.Reply, error), into *resolution.Answers) (replyOf, error) {
			body := bytes.Clone(body)
			r, err := by(resolution.Operation(op), 200, body, into)
			if r.Body, r.ID = bytes.Clone(r.Body), strings.Clone(r.ID); err == nil {
				clear(body) // of which the data are no part
			}
			return leadsOf(r), err
		}
		want, wantErr := read(Read, nil)
		for range 2 {
			if got, err := read(reader.Read, into); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
				t.Errorf("%s %q:\ngot  %+v %v\nwant %+v %v", op, body, got, err, want, wantErr)
			}
		}
	})
}

// replyOf is a reply with leads in place of rows.
type replyOf struct {
	resolution.Reply
	lead *resolution.Lead
	page []resolution.FoundLead
}

func leadsOf(r resolution.Reply) replyOf {
	of := replyOf{Reply: r, lead: r.Found.Lead()}
	of.Found = resolution.AnswerRow{}
	if r.Page != nil {
		page := *r.Page
		of.page, page.Result.Leads, of.Page = resolutiontest.Found(page.Result.Leads), nil, &page
	}
	return of
}

// TestCompanies: answers share the record of a company, which does not hold on to
// their bodies.
func TestCompanies(t *testing.T) {
	var r Reader
	answer := func(n int) []byte {
		return fmt.Appendf(nil, `{"data":true,"lead":{"company":{"name":"Company %d","industry":"I","about":%q,"address":{"city":"C"}}},"payload":{}}`, n, strings.Repeat("x", 1000))
	}
	read := func(body []byte) *resolution.Company {
		reply, err := r.Read(resolution.IPToCompany, 200, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		return reply.Found.Lead().Company
	}
	body := answer(1)
	first := read(body)
	clear(body)
	want, err := Read(resolution.IPToCompany, 200, answer(1), nil)
	if err != nil || !reflect.DeepEqual(first, want.Found.Lead().Company) {
		t.Errorf("%+v after the body is gone, want %+v, %v", first, want.Found.Lead().Company, err)
	}
	if again, other := read(answer(1)), read(answer(2)); again != first || other == first {
		t.Errorf("company 1 is %p and %p, company 2 %p", first, again, other)
	}
}
