package runs

import (
	"testing"

	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/internal/worldtest"
	"github.com/leadetl/leadetl/resolution"
)

// TestEveryPlace kills small runs of each kind at each of their steps; if one does not wait for it,
// at a tenth of them.
func TestEveryPlace(t *testing.T) {
	nth := 1
	if testing.Short() {
		nth = 10
	}
	worldtest.Places{Suite: suite, Worlds: len(small), Die: die}.Every(t, nth)
}

// small are the plans of runs that are killed at each place.
var small = func() (all []plan) {
	for i, s := range scenes {
		p := plan{
			scene: s, operation: resolution.Enrichment, nights: 1, dated: true, rows: 5, files: 1, perPart: 3, batch: 2, workers: 1,
			parted: i%2 == 1, malformed: i%2 == 0, listed: i%3 == 0, crashes: 1, honours: i%4 < 2, want: []string{"email", "phone"}, copied: 3, prompt: true,
		}
		if s.kind == hashed {
			p.nights, p.changes = 2, true
		}
		all = append(all, p.of())
	}
	replaced := all[0]
	replaced.dated, replaced.parted = false, true
	return append(all, replaced)
}()

// foreseen are the histories of small plans that nothing has disturbed, by their numbers.
var foreseen = map[int]*history{}

// die lets a world live whose machine dies once, at a step of all its nights. With 0 it does not.
func die(t *testing.T, w *worldtest.World, dir string, number, last int) (wrong []string, steps int) {
	s3test.Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	defer w.GuardNames()()
	h, err := newHistory(w, small[number], dir)
	if err != nil {
		return []string{err.Error()}, 0
	}
	if !h.plan.onS3 {
		defer w.GuardSQLite(h.disturbed.dir, 0)()
	}
	if foreseen[number] == nil {
		foreseen[number] = h
		for n := range h.plan.datasets() {
			if err := h.foresee(t.Context(), h.plan.night(n)); err != nil {
				return []string{err.Error()}, 0
			}
		}
	}
	h.want, h.steps, h.undisturbed = foreseen[number].want, foreseen[number].steps, foreseen[number].undisturbed
	for n, most := range h.steps {
		night := h.plan.night(n)
		switch {
		case last > most:
			h.disturbed.life(t.Context(), night, 0, false)
		case last > 0:
			if h.disturb(t.Context(), night, last); len(h.disturbed.wrong) == 0 {
				h.finish(t.Context(), night)
			}
		}
		last -= most
		steps += most
	}
	return h.disturbed.wrong, steps
}
