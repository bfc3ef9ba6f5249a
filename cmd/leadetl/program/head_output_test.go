package program

import (
	"bytes"
	"testing"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

func TestHeadSaysTheCost(t *testing.T) {
	none, one, many := int64(0), int64(1), int64(1200)
	for _, c := range []struct {
		credits *int64
		want    string
	}{
		{nil, "0 of 3 rows\n"},
		{&none, "0 of 3 rows; paid for the dataset: 0 credits\n"},
		{&one, "0 of 3 rows; paid for the dataset: 1 credit\n"},
		{&many, "0 of 3 rows; paid for the dataset: 1,200 credits\n"},
	} {
		var out bytes.Buffer
		err := (&head{}).printTable(&out, 80, &sinks.Manifest{Totals: sinks.Totals{Rows: 3}, CreditsTotal: c.credits})
		if err != nil || out.String() != c.want {
			t.Errorf("%q, %v; want %q", &out, err, c.want)
		}
	}
}

// TestHeadShowsWhatWasAskedFor: columns that the user names need not fit.
func TestHeadShowsWhatWasAskedFor(t *testing.T) {
	value := "12345678"
	for asked, want := range map[bool]string{
		true:  "a         b         c\n12345678  12345678  12345678\n1 of 3 rows\n",
		false: "a         b\n12345678  12345678\n1 of 3 rows\ndo not fit; see --select and --json: c\n",
	} {
		h := &head{columns: []schema.Column{{Name: "a"}, {Name: "b"}, {Name: "c"}}, rows: [][]cell{{&value, &value, &value}}, asked: asked}
		var out bytes.Buffer
		if err := h.printTable(&out, 20, &sinks.Manifest{Totals: sinks.Totals{Rows: 3}}); err != nil || out.String() != want {
			t.Errorf("asked for by name: %t, %v:\n%s", asked, err, &out)
		}
	}
}
