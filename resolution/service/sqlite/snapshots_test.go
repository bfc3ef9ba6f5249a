package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// sees is what a job sees when it was created.
func (d *desk) sees(j state.Job) state.Snapshot {
	d.t.Helper()
	if _, err := d.CreateJob(d.t.Context(), j, 0, nil); err != nil {
		d.t.Error(err)
	}
	created, err := d.FindJob(d.t.Context(), j.Organization, j.ID)
	if err != nil {
		d.t.Error(err)
		return state.Snapshot{}
	}
	return created.Sees
}

func TestSnapshot(t *testing.T) {
	d := newDesk(t)
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	at := func(hours int, edition string) state.Snapshot {
		return state.Snapshot{Taken: d.now.Add(time.Duration(hours) * time.Hour), Start: day.AddDate(0, 0, -7), End: day, Edition: edition}
	}
	search, other := [32]byte{1}, [32]byte{2}
	for _, c := range []struct {
		name         string
		organization int64
		search       [32]byte
		proposed     state.Snapshot
		want         state.Snapshot
	}{
		{"the first is taken", d.first, search, at(0, "a"), at(0, "a")},
		{"a page sees what the first saw", d.first, search, at(1, "b"), at(0, "a")},
		{"another search has its own", d.first, other, at(1, "b"), at(1, "b")},
		{"another organization has its own", d.second, search, at(2, "c"), at(2, "c")},
		{"a clock that was set back", d.first, search, at(-3, "z"), at(0, "a")},
		{"just before 24 hours", d.first, search, func() state.Snapshot { s := at(24, "d"); s.Taken = s.Taken.Add(-time.Millisecond); return s }(), at(0, "a")},
		{"after 24 hours there is a new one", d.first, search, at(24, "d"), at(24, "d")},
		{"from then on", d.first, search, at(25, "e"), at(24, "d")},
	} {
		j := d.job(c.organization)
		j.Search, j.Sees = c.search, c.proposed
		if got := d.sees(j); got != c.want {
			t.Errorf("%s: %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

// Of searches that come at once, one decides what all of them see.
func TestSnapshotsAtOnce(t *testing.T) {
	d := newDesk(t)
	seen := make([]state.Snapshot, 8)
	var all sync.WaitGroup
	for i := range seen {
		all.Go(func() {
			j := d.job(d.first)
			j.Sees.Edition = fmt.Sprint(i)
			seen[i] = d.sees(j)
		})
	}
	all.Wait()
	for _, s := range seen {
		if s != seen[0] {
			t.Errorf("seen %+v and %+v", seen[0], s)
		}
	}
}

// A creation that is refused decides nothing about what others see.
func TestSnapshotOfARefusedJob(t *testing.T) {
	d := newDesk(t)
	for i, refused := range []struct {
		organization, reserved int64
		maxActive              int
		reply                  *state.Reply
		want                   error
	}{
		{d.first, 101, 0, nil, &state.InsufficientError{Required: 101, Balance: 100}},
		{d.first, 1, 1, nil, state.ErrTooManyActive},
	} {
		if i == 1 {
			other := d.job(d.first)
			other.Search = [32]byte{9}
			d.sees(other)
		}
		j := d.job(refused.organization)
		j.Reserved, j.Sees.Edition = refused.reserved, "refused"
		if _, err := d.CreateJob(t.Context(), j, refused.maxActive, refused.reply); err == nil {
			t.Fatalf("%+v was not refused", refused)
		} else if too := (*state.InsufficientError)(nil); !errors.As(err, &too) && !errors.Is(err, refused.want) {
			t.Errorf("%v, want %v", err, refused.want)
		}
	}
	if n := d.count("snapshots WHERE edition = 'refused'"); n != 0 {
		t.Errorf("%d snapshots of refused jobs", n)
	}
	j := d.job(d.first)
	j.Sees.Edition = "later"
	if got := d.sees(j); got.Edition != "later" {
		t.Errorf("sees %+v", got)
	}
}
