package program

import (
	"bytes"
	"testing"

	"github.com/leadetl/leadetl/sinks"
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
