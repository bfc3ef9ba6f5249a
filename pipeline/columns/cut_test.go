package columns

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
)

// A batch built in pieces has the rows of the batch built at once.
func TestRecordsOfACutBatch(t *testing.T) {
	const n = 20
	b := &Batch{Source: "a.csv"}
	b.Reset(n)
	kept := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range n {
		b.Rows = append(b.Rows, int64(i+1))
		kept.Append(fmt.Sprint("kept", i))
		b.Keys.Data = fmt.Appendf(b.Keys.Data, "192.31.196.%d", i)
		b.Keys.End()
		b.IPClasses, b.OrgTypes = append(b.IPClasses, "public"), append(b.OrgTypes, "business")
		c := &resolution.Company{Name: fmt.Sprint("Company ", i), About: strings.Repeat("x", 100*i)}
		if i%4 == 3 {
			c, b.Outcomes[i], b.Reasons[i] = nil, NoMatch, "not_found"
		}
		b.Companies = append(b.Companies, c)
	}
	b.Kept = []*array.String{kept.NewStringArray()}
	layout, err := NewLayout(Settings{Operation: resolution.IPToCompany, Kept: []string{"note"}, Identifier: "ip"})
	if err != nil {
		t.Fatal(err)
	}
	whole := lines(layout.NewBuilder().Record(b))
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
			t.Errorf("limit %d: rows %v, want %v", limit, pieces, whole)
		}
		if (count > 1) != (limit < 1<<20) {
			t.Errorf("limit %d: %d pieces", limit, count)
		}
	}
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
