package embedded

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/values"
)

// someEmail draws the key of an email: an address, or a digest of one.
func someEmail(t *rapid.T) string {
	address := rapid.SampledFrom([]string{"x@y.example", "z@y.example", "a.b+c@gmail.com", "ab@gmail.com", "unknown@y.example"}).Draw(t, "address")
	if length := rapid.SampledFrom([]int{0, 0, 32, 40, 64}).Draw(t, "length"); length > 0 {
		return hashOf(address, length)
	}
	return address
}

// someKey draws a key that an operation may be asked about, "" for none.
func someKey(t *rapid.T, op resolution.Operation) string {
	if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
		return ""
	}
	switch op.Identifier() {
	case resolution.Email:
		return someEmail(t)
	case resolution.NetworkURL:
		return "n.example/in/" + rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "profile")
	}
	return rapid.SampledFrom([]string{"8.8.8.8", "8.8.8.9", "8.8.4.4", "9.9.9.9", "10.1.2.3", "2001:4860::8", "2001:4860::9", "2001:4861::", "::1", nat64}).Draw(t, "ip")
}

// TestBatch: a batch answers as the model, whatever its memory was used for before, and so does
// one key after another.
func TestBatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := someModel(rt)
		e, closeDirectory := m.engine(rt, t)
		defer closeDirectory()
		single := resolution.NewSingle(e)
		for _, op := range resolution.SingleRecord {
			batch := e.NewBatch(op)
			for range 3 {
				keys := make([]string, rapid.IntRange(0, 40).Draw(rt, "keys"))
				for i := range keys {
					keys[i] = someKey(rt, op)
				}
				sameAnswers(rt, m, op, batch, keys)
				for _, key := range keys[:min(len(keys), 3)] {
					sameAnswer(rt, m, op, single, key)
				}
			}
		}
	})
}

// sameAnswer checks the answer to one key.
func sameAnswer(t *rapid.T, m *model, op resolution.Operation, single *resolution.Single, key string) {
	if key == "" {
		return
	}
	got, err := single.Resolve(context.Background(), resolution.Request{Operation: op, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := answerFacts(t, got), answerFacts(t, m.answer(op, key)); got != want {
		t.Fatalf("%s of %s:\n got %s\nwant %s", op, key, got, want)
	}
}

// sameAnswers checks the answers as columns, also where a limit ends them early, and where companies
// are rows of reference data.
func sameAnswers(t *rapid.T, m *model, op resolution.Operation, b resolution.Batch, keys []string) {
	want := make([]string, len(keys))
	for i, key := range keys {
		answer := m.answer(op, key)
		if op == resolution.EmailToHEM && strings.Contains(key, "@") && answer.Lead != nil {
			answer.Lead.HashedEmails = nil // they follow from the key
		}
		want[i] = answerFacts(t, answer)
	}
	got, asked := resolutiontest.Answers(), resolutiontest.Questions(op, keys...)
	list := got.Companies.Table.(*resolution.CompanyList)
	for range 2 {
		limit := rapid.SampledFrom([]int{0, 500, 2000, math.MaxInt}).Draw(t, "limit")
		for from := 0; from < len(keys); {
			rest := keys[from:]
			got.Companies.Table, got.Companies.Rows = list, nil
			if rapid.Bool().Draw(t, "rows") {
				got.Companies.Table = rowsTable{list}
			}
			n, err := b.Resolve(context.Background(), asked.Slice(from, len(keys)), limit, got)
			if err != nil || n < 1 || n > len(rest) || n < len(rest) && got.Size <= limit || len(got.Reasons) != n || len(got.Matched) != n {
				t.Fatalf("%s: %d keys with %d bytes, %d reasons and %d matches of %d keys, limit %d: %v", op, n, got.Size, len(got.Reasons), len(got.Matched), len(rest), limit, err)
			}
			listRows(&got.Companies, list)
			for i, key := range rest[:n] {
				answer := resolution.Answer{Reason: got.Reasons[i], Lead: got.Lead(i)}
				if i < len(got.OrgTypes) {
					answer.OrgType = got.OrgTypes[i]
				}
				if facts := answerFacts(t, answer); facts != want[from+i] {
					t.Fatalf("%s of %s (%d of %d) in columns, limit %d:\n got %s\nwant %s", op, key, from+i, len(keys), limit, facts, want[from+i])
				}
				got.Matched[i] = true // whoever has no match has no data
				if l := got.Lead(i); answer.Lead == nil && !reflect.DeepEqual(l, &resolution.Lead{}) {
					t.Fatalf("%s of %s has no match, and %+v", op, key, l)
				}
			}
			from += n
		}
	}
}

// rowsTable is a table in whose place rows may be.
type rowsTable struct{ *resolution.CompanyList }

func (rowsTable) TakesRows() bool { return true }

// listRows makes rows of reference data companies of a list.
func listRows(c *resolution.CompanyCodes, list *resolution.CompanyList) {
	c.Table = list
	if c.Rows == nil {
		return
	}
	for i, row := range c.Codes {
		if row == 0 {
			continue
		}
		var r resolution.CompanyRecord
		for k, v := range values.Company {
			column := &c.Rows.Columns[k]
			switch code := column.Codes[row]; {
			case code == 0 || v.IsMade():
			case v.Kind == values.Year:
				r.Fields[v.Company].Text = fmt.Sprint(int32(binary.NativeEndian.Uint32(column.Bytes[4*code:])))
			default:
				r.Fields[v.Company].Text = string(column.Bytes[column.Offsets[code]:column.Offsets[code+1]])
			}
		}
		c.Codes[i] = list.Add(r)
	}
	c.Rows = nil
}

// answerFacts is an answer as text.
func answerFacts(t *rapid.T, a resolution.Answer) string {
	lead, err := json.Marshal(a.Lead)
	if err != nil {
		t.Fatal(err)
	}
	raw := ""
	if a.Lead != nil {
		raw = a.Lead.PhoneRaw
	}
	return fmt.Sprintf("%q %q %q %s", a.Reason, a.OrgType, raw, lead)
}

// TestBatchOfInvalidKeys fails as a request does.
func TestBatchOfInvalidKeys(t *testing.T) {
	b := New(sample(t), Options{}).NewBatch(resolution.EmailToHEM)
	for _, key := range []string{"no digest", strings.Repeat("0", 66)} {
		if _, err := resolutiontest.Ask(t.Context(), b, resolution.EmailToHEM, "ada@bakery.example", key); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", key, err)
		}
	}
}
