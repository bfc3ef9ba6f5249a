package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution"
)

// TestEveryPlace kills small runs of each kind at each of their steps; if one does not wait for it,
// at a fortieth of them.
func TestEveryPlace(t *testing.T) {
	nth := 1
	if testing.Short() {
		nth = 40
	}
	worldtest.Places{Suite: suite, Worlds: len(small), Die: die}.Every(t, nth)
}

// small are the plans of runs that are killed at each place.
var small = func() (all []plan) {
	for i, s := range scenes {
		p := plan{
			scene: s, outOnS3: s.onS3, operation: resolution.Enrichment, nights: 1, dated: true, rows: 5, files: 1, perPart: 3, batch: 2, workers: 1,
			parted: i%2 == 1, malformed: i%2 == 0, listed: i%3 == 0, crashes: 1, honours: i%4 < 2, want: []string{"email", "phone"}, prompt: true,
			persons: !s.onS3,
		}
		if s.kind == hashed && !s.onS3 {
			p.nights, p.changes = 2, true
		}
		all = append(all, p.of())
	}
	replaced, toS3 := all[0], all[3]
	replaced.dated, replaced.parted, replaced.changes = false, true, false
	toS3.outOnS3 = true
	return append(all, replaced, toS3)
}()

// listsOfSmall is the folder of the lists of small plans.
var listsOfSmall = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp(worldtest.Memory(), "leadetl-world-")
	if err != nil {
		panic(err)
	}
	return dir
})

// foreseen are the histories of small plans that nothing has disturbed, by their numbers.
var foreseen = map[int]*history{}

// die lets a world live whose machine dies once, at a step of all its nights. With 0 it does not.
func die(t *testing.T, w *worldtest.World, dir string, number, last int) (wrong []string, steps int) {
	s3test.Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	defer w.GuardNames()()
	lists := filepath.Join(listsOfSmall(), fmt.Sprint(number)) // the same for all places
	h, err := newHistory(w, small[number], dir, lists)
	if err == nil && foreseen[number] == nil {
		err = small[number].writeLists(w, lists)
	}
	if err != nil {
		return []string{err.Error()}, 0
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
