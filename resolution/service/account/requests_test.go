package account

import (
	"slices"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Counts are taken once, and those that could not be stored are counted again.
func TestRequests(t *testing.T) {
	var r Requests
	at := time.Date(2026, 11, 20, 23, 59, 59, 0, time.UTC)
	r.Count(1, 2, "enrichment", at, 200)
	r.Count(1, 2, "enrichment", at, 429)
	r.Count(1, 2, "enrichment", at.Add(time.Second), 200)
	order := func(a, b state.Requests) int { return int(a.Day - b.Day) }
	day := at.Unix() / 86400
	want := []state.Requests{
		{Organization: 1, Key: 2, Day: day, Operation: "enrichment", Total: 2, Limited: 1},
		{Organization: 1, Key: 2, Day: day + 1, Operation: "enrichment", Total: 1},
	}
	taken := r.Take()
	slices.SortFunc(taken, order)
	if !slices.Equal(taken, want) || len(r.Take()) != 0 {
		t.Errorf("took %+v, want %+v once", taken, want)
	}
	r.Count(1, 2, "enrichment", at, 200)
	r.Return(taken)
	want[0].Total++
	taken = r.Take()
	slices.SortFunc(taken, order)
	if !slices.Equal(taken, want) {
		t.Errorf("after a failure %+v, want %+v", taken, want)
	}
}
