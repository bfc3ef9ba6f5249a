package columns

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// wideBatch has n rows, the later the wider, of which every fourth found
// nothing.
func wideBatch(n int) *Batch {
	b := &Batch{Source: "a.csv"}
	b.Reset(n)
	b.Answers = &resolution.Answers{Companies: resolution.CompanyCodes{Table: newCompanyTable(func(string) bool { return true })}}
	kept := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range n {
		b.Rows = append(b.Rows, int64(i+1))
		kept.Append(fmt.Sprint("kept", i))
		b.Keys.Data = fmt.Appendf(b.Keys.Data, "192.31.196.%d", i)
		b.Keys.End()
		b.IPClasses, b.Answers.OrgTypes = append(b.IPClasses, "public"), append(b.Answers.OrgTypes, "business")
		b.Receipts = append(b.Receipts, outcome.Receipt{ResolutionID: fmt.Sprint("res_", i), ResolvedAt: time.Unix(int64(i), 0), Credits: int32(i), Priced: true})
		c := &resolution.Company{Name: fmt.Sprint("Company ", i), About: strings.Repeat("x", 100*i)}
		if i%4 == 3 {
			c, b.Outcomes[i], b.Reasons[i] = nil, outcome.NoMatch, "not_found"
		}
		b.Answers.AddFound(&resolution.FoundLead{LeadID: fmt.Sprint("lead_", i), MatchedKeywords: []string{fmt.Sprint("k", i)}, Lead: resolution.Lead{Phone: fmt.Sprint(i), Company: c}})
		b.Finds = append(b.Finds, Find{SearchRow: 1, Page: int32(i + 1)})
		b.Counts = append(b.Counts, &resolution.SearchCount{Leads: int64(i)})
	}
	b.Kept = []*array.String{kept.NewStringArray()}
	return b
}

func sumOfBytes(b *Batch) (sum int) {
	for i := range b.Len() {
		if b.Answers != nil {
			sum += b.textBytes(i)
		}
	}
	return sum
}

// A batch built in pieces has the rows of the batch built at once.
func TestRecordsOfACutBatch(t *testing.T) {
	const n = 20
	for _, c := range []struct {
		op   resolution.Operation
		only func(b *Batch) // leaves what the operation needs
		cuts bool
	}{
		{resolution.IPToCompany, func(b *Batch) { b.Finds, b.Counts, b.Receipts = nil, nil, nil }, true},
		{resolution.Enrichment, func(b *Batch) { b.Finds, b.Counts = nil, nil }, true},
		{resolution.KeywordToLead, func(b *Batch) { b.Counts = nil }, true},
		{resolution.KeywordToLeadCount, func(b *Batch) { b.Answers, b.Finds = nil, nil }, false},
	} {
		b := wideBatch(n)
		c.only(b)
		layout, err := NewLayout(Settings{Operation: c.op, Kept: []string{"note"}, Identifier: "ip"})
		if err != nil {
			t.Fatal(err)
		}
		whole := lines(layout.NewBuilder().Record(b))
		if sum := sumOfBytes(b); b.Answers != nil && (b.allBytes() < sum || b.allBytes() > sum+n*(hemBytes+phoneBytes)) {
			t.Errorf("%s: %d bytes, the rows have %d", c.op, b.allBytes(), sum)
		}
		for _, limit := range []int{0, 500, 1000, 1 << 20} {
			var pieces []string
			count := 0
			builder := layout.NewBuilder()
			for from := 0; from < n; count++ {
				to := b.Cut(from, limit)
				pieces = append(pieces, lines(builder.Record(b.Slice(from, to)))...)
				from = to
			}
			if fmt.Sprint(pieces) != fmt.Sprint(whole) {
				t.Errorf("%s, limit %d: rows %v, want %v", c.op, limit, pieces, whole)
			}
			if (count > 1) != (c.cuts && limit < 1<<20) {
				t.Errorf("%s, limit %d: %d pieces", c.op, limit, count)
			}
		}
	}
}

// Whatever it is that makes rows wide, a record of several holds no more text
// than the limit. Companies are codes.
func TestCutBoundsRecords(t *testing.T) {
	const n, limit = 20, 10_000
	wide := strings.Repeat("x", 1000)
	hashes := slices.Repeat([]resolution.HashedEmail{{Email: strings.Repeat("0", 64), Type: "sha256"}}, 15)
	found := func(l resolution.FoundLead) func(*Batch, int) {
		return func(b *Batch, _ int) { b.Answers.AddFound(&l) }
	}
	lead := func(l resolution.Lead) func(*Batch, int) { return found(resolution.FoundLead{Lead: l}) }
	contact := func(c resolution.Contact) func(*Batch, int) { return lead(resolution.Lead{Contact: c}) }
	for name, widen := range map[string]func(b *Batch, i int){
		"key":           func(b *Batch, _ int) { b.Keys.Data = append(b.Keys.Data, wide...) },
		"reason":        func(b *Batch, i int) { b.Reasons[i] = wide },
		"resolution_id": func(b *Batch, i int) { b.Receipts[i].ResolutionID = wide },
		"keywords":      found(resolution.FoundLead{MatchedKeywords: []string{wide[:500], wide[500:]}}),
		"lead_id":       found(resolution.FoundLead{LeadID: wide}),
		"lead_type":     found(resolution.FoundLead{LeadType: wide}),
		"first_name":    contact(resolution.Contact{FirstName: wide}),
		"last_name":     contact(resolution.Contact{LastName: wide}),
		"full_name":     contact(resolution.Contact{FullName: wide}),
		"headline":      contact(resolution.Contact{Headline: wide}),
		"job_title":     contact(resolution.Contact{JobTitle: wide}),
		"seniority":     contact(resolution.Contact{Seniority: wide}),
		"department":    contact(resolution.Contact{Department: wide}),
		"email":         contact(resolution.Contact{Email: wide}),
		"emails":        contact(resolution.Contact{Emails: []resolution.ContactEmail{{Email: wide[:500], Type: wide[500:]}}}),
		"phones":        contact(resolution.Contact{Phones: []resolution.ContactPhone{{Phone: wide[:500], Type: wide[500:]}}}),
		"address":       contact(resolution.Contact{Address: resolution.Address{Street: wide[:250], ZipCode: wide[:250], City: wide[:250], State: wide[:250]}}),
		"phone":         lead(resolution.Lead{Phone: wide}),
		"hashed_emails": lead(resolution.Lead{HashedEmails: hashes}),
		"network_url":   lead(resolution.Lead{NetworkURL: wide}),
		"input column": func(b *Batch, _ int) {
			kept := array.NewStringBuilder(memory.DefaultAllocator)
			for range n {
				kept.Append(wide)
			}
			b.Kept = []*array.String{kept.NewStringArray()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Batch{Source: "a.csv", Answers: &resolution.Answers{}, Finds: make([]Find, n), Receipts: make([]outcome.Receipt, n)}
			settings := Settings{Operation: resolution.KeywordToLead, DefaultRegion: "US"}
			b.Reasons, b.Outcomes = make([]string, n), make([]outcome.Outcome, n)
			b.Keys.Reset()
			for i := range n {
				b.Rows = append(b.Rows, 1)
				widen(b, i)
				if b.Answers.Len() == i {
					b.Answers.AddMiss("")
				}
				b.Keys.End()
			}
			for range b.Kept {
				settings.Kept = append(settings.Kept, "note")
			}
			layout, err := NewLayout(settings)
			if err != nil {
				t.Fatal(err)
			}
			layout.CleanPhones(b.Answers)
			builder, pieces := layout.NewBuilder(), 0
			for from := 0; from < n; pieces++ {
				to := b.Cut(from, limit)
				rec := builder.Record(b.Slice(from, to))
				if got := recordText(rec); got > limit && to-from > 1 {
					t.Errorf("rows %d to %d hold %d bytes of text, over %d", from, to, got, limit)
				}
				from = to
			}
			if pieces < 2 || pieces > 4 {
				t.Errorf("%d pieces of %d rows of 1,000 bytes under a limit of %d", pieces, n, limit)
			}
		})
	}
}

// recordText is the length of a record's values that are text.
func recordText(rec arrow.Record) (size int) {
	for _, c := range rec.Columns() {
		size += arrayText(c)
	}
	return size
}

func arrayText(a arrow.Array) (size int) {
	switch a := a.(type) {
	case *array.String:
		for i := range a.Len() {
			size += a.ValueLen(i)
		}
	case *array.List:
		size += arrayText(a.ListValues())
	case *array.Struct:
		for i := range a.NumField() {
			size += arrayText(a.Field(i))
		}
	}
	return size
}

func lines(rec arrow.Record) (lines []string) {
	for i := range int(rec.NumRows()) {
		var line []string
		for _, c := range rec.Columns() {
			line = append(line, c.ValueStr(i))
		}
		lines = append(lines, strings.Join(line, "|"))
	}
	return lines
}

// What the rows are resolved by is in no column of any spelling.
func TestDroppedIdentifier(t *testing.T) {
	for _, c := range []struct {
		op         resolution.Operation
		identifier string
		kept, gone []string
	}{
		{resolution.EmailToHEM, "email", []string{"id", "email", "EMAIL"}, []string{"email", "EMAIL", "in_email", "key"}},
		{resolution.NetworkToHEM, "network_url", []string{"id", "network_url"}, []string{"network_url", "in_network_url", "key"}},
		{resolution.Enrichment, "profile", []string{"id", "profile"}, []string{"profile", "network_url", "key"}},
		{resolution.Deanonymization, "ip", []string{"id", "ip"}, []string{"ip", "key"}},
	} {
		layout, err := NewLayout(Settings{Operation: c.op, Kept: c.kept, Identifier: c.identifier, DropIdentifier: true})
		if err != nil {
			t.Errorf("%s: %v", c.op, err)
			continue
		}
		for _, name := range c.gone {
			if layout.Schema().HasField(name) {
				t.Errorf("%s: column %s is there", c.op, name)
			}
		}
		if !layout.Schema().HasField("id") || !layout.Schema().HasField("outcome") {
			t.Errorf("%s: columns %v", c.op, layout.Schema().Fields())
		}
	}
}

// Own leaves out what the input brought, whatever it is called.
func TestOwnColumns(t *testing.T) {
	layout, err := NewLayout(Settings{Operation: resolution.NetworkToPhone, Kept: []string{"phone", "hem_note", "id"}, Identifier: "network_url"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(layout.Columns()) - len(layout.Own()); n != 3 || layout.Own()[0].Name != "source" {
		t.Errorf("%d columns carried over, own ones begin with %q; want 3 and source", n, layout.Own()[0].Name)
	}
}

// What is left of answers after rows are suppressed, cut and picked is what answers to those
// rows alone are, also after another part has started a table of companies.
func TestAnswersOfSomeRows(t *testing.T) {
	const n = 20
	for _, op := range []resolution.Operation{resolution.IPToCompany, resolution.KeywordToLead} {
		layout, err := NewLayout(Settings{Operation: op, Kept: []string{"note"}, Identifier: "ip"})
		if err != nil {
			t.Fatal(err)
		}
		builder, other := layout.NewBuilder(), layout.NewBuilder()
		for round := range 3 {
			b := wideBatch(n)
			b.Counts, b.Receipts = nil, nil
			b.Suppress(func(i int) string { return map[bool]string{true: "listed:ip"}[i == round || i == 7] })
			if round == 1 {
				layout.companies.now = nil
			}
			whole := lines(builder.Record(b))
			for _, f := range []struct {
				rows  []int
				piece *Batch
			}{
				{[]int{3, 4, 5, 6, 7, 8}, b.Slice(3, 9)},
				{[]int{7, 2, 2, 19}, b.Pick([]int{7, 2, 2, 19})},
			} {
				var want []string
				for _, row := range f.rows {
					want = append(want, whole[row])
				}
				if got := lines(other.Record(f.piece)); !slices.Equal(got, want) {
					t.Errorf("%s, round %d: rows %v, want %v", op, round, got, want)
				}
			}
			for _, row := range []int{round, 7} {
				if empty := b.Answers.Bytes(row) == 0; !empty || b.Answers.Matched[row] || strings.Contains(whole[row], "Company") || strings.Contains(whole[row], "lead_") {
					t.Errorf("%s: a suppressed row is %s", op, whole[row])
				}
			}
		}
	}
}
