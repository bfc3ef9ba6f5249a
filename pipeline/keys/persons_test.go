package keys

import (
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/profile"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// TestPersons: a row without an identifier is asked about by its values, if it has all, and one with an
// identifier goes with its values.
func TestPersons(t *testing.T) {
	const ada = `{"company_domain":"x.example","first_name":"ada"}`
	rows := [][3]string{ // profile, first name, domain
		{"", "Ada", "https://www.X.example/"}, {"", "ADA ", "x.example"}, {"linkedin.com/in/ada", "Ada", "x.example"}, {"linkedin.com/in/ada", "Eve", ""},
		{"linkedin.com/in/ada", "", ""}, {"null", "Ada", "nowhere"}, {"", "", ""}, {"nobody", "Ada", "x.example"},
	}
	for _, nameless := range []bool{false, true} {
		cells := [3]*array.StringBuilder{}
		in := &sources.Batch{Rows: make([]int64, len(rows))}
		for c := range cells {
			cells[c] = array.NewStringBuilder(memory.DefaultAllocator)
			for _, row := range rows {
				cells[c].Append(row[c])
			}
			in.Columns = append(in.Columns, cells[c].NewStringArray())
		}
		r := Reading{Profiles: profile.DefaultRules(), From: map[string]int{"first_name": 1, "company_domain": 2}, Nameless: nameless}
		b := &columns.Batch{}
		NewMaker(resolution.Enrichment, r, 0, 0, -1, nil).Fill(b, in)
		var got []string
		for i := range rows {
			if got = append(got, b.Reasons[i]); b.Outcomes[i] == outcome.Matched {
				got[i] = string(b.Keys.At(i))
			}
		}
		asked, question := Asked(b)
		want := []string{ada, ada, "linkedin.com/in/ada", "linkedin.com/in/ada", "linkedin.com/in/ada", "incomplete", "empty", "invalid_url"}
		wantAsked := []string{ada, "linkedin.com/in/ada\x00\x00" + ada, "linkedin.com/in/ada\x00\x00" + `{"first_name":"eve"}`, "linkedin.com/in/ada"}
		wantQuestion := []int{0, 0, 1, 2, 3, -1, -1, -1}
		if nameless {
			want = []string{ada, ada, ada, "incomplete", "empty", "incomplete", "empty", ada}
			wantAsked, wantQuestion = []string{ada}, []int{0, 0, 0, -1, -1, -1, -1, 0}
		}
		if !slices.Equal(got, want) || !slices.Equal(asked, wantAsked) || !slices.Equal(question, wantQuestion) {
			t.Errorf("nameless %v: keys %q, asked %q by %v\nwant %q, %q by %v", nameless, got, asked, question, want, wantAsked, wantQuestion)
		}
	}
}

// TestListedPersons: who is listed by name and company, or by the email of from, is suppressed, whatever else the row
// has or lacks.
func TestListedPersons(t *testing.T) {
	b := suppression.NewBuilder(suppression.Rules{Profiles: profile.DefaultRules()})
	for _, entry := range []string{"ada@x.example", `{"company_domain":"forge.example","first_name":"Bo","last_name":"Second"}`} {
		if err := b.Add(entry); err != nil {
			t.Fatal(err)
		}
	}
	lists := b.Set()
	for _, c := range []struct {
		row  [4]string // profile, email, name, domain
		want string
	}{
		{[4]string{"", "Ada@x.example", "Ada", "x.example"}, "suppressed:person"},
		{[4]string{"", "Ada@x.example", "", ""}, "suppressed:person"},
		{[4]string{"linkedin.com/in/bo", "", "Bo Second", "forge.example"}, "suppressed:person"},
		{[4]string{"nobody", "", "BO  second", "www.Forge.example"}, "suppressed:person"},
		{[4]string{"", "bo@x.example", "Bo Second", "forge.example"}, "suppressed:person"},
		{[4]string{"linkedin.com/in/bo", "bo@x.example", "Bo Second", "x.example"}, ""},
		{[4]string{"", "", "Bo Second", ""}, "incomplete"},
	} {
		in := &sources.Batch{Rows: []int64{1}}
		for _, cell := range c.row {
			column := array.NewStringBuilder(memory.DefaultAllocator)
			column.Append(cell)
			in.Columns = append(in.Columns, column.NewStringArray())
		}
		r := Reading{Profiles: profile.DefaultRules(), From: map[string]int{"email": 1, "full_name": 2, "company_domain": 3}}
		got := &columns.Batch{}
		NewMaker(resolution.Enrichment, r, 0, 0, -1, NewSuppressor(lists, resolution.Enrichment, "", false, nil, 0)).Fill(got, in)
		if got.Reasons[0] != c.want {
			t.Errorf("%q: %q, want %q", c.row, got.Reasons[0], c.want)
		}
	}
}
