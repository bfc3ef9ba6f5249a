package purchase

import (
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

func TestDecide(t *testing.T) {
	began := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	before, now, after := began.Add(-time.Hour), began.Add(time.Minute), began.Add(time.Hour)
	fresh := answers.Found{Stored: true, Fresh: true, Answer: answers.Answer{Outcome: answers.Matched, Received: before}}
	stale := answers.Found{Stored: true, Answer: answers.Answer{Outcome: answers.Matched, Received: before}}
	refused := func(at time.Time) answers.Found {
		return answers.Found{Stored: true, Answer: answers.Answer{Outcome: answers.Refused, Received: at}}
	}
	unknown := func(sent time.Time) answers.Found {
		return answers.Found{Open: answers.Unknown, Sent: sent, FirstSent: sent}
	}
	parked := func(deadline time.Time) answers.Found {
		return answers.Found{Open: answers.Parked, Sent: before, FirstSent: before, Deadline: deadline}
	}
	aged := func(age time.Duration) answers.Found {
		return answers.Found{Open: answers.Unknown, Sent: now, FirstSent: now.Add(-age)}
	}
	sentLater := aged(time.Hour)
	sentLater.Sent = after
	forgetful := aged(10 * time.Minute)
	forgetful.Deadline = forgetful.FirstSent.Add(10 * time.Minute)
	remembered := aged(8 * time.Minute)
	remembered.Deadline = remembered.FirstSent.Add(10 * time.Minute)
	without := aged(0)
	without.FirstSent = time.Time{}
	old := parked(before)
	old.FirstSent = now.Add(-DefaultKeyWindow)
	both := fresh
	both.Open, both.Sent = answers.Unknown, before
	staleUnknown := stale
	staleUnknown.Open, staleUnknown.Sent = answers.Unknown, before

	plain, retry, offline := Remote{}, Remote{RetryUnknown: true}, Remote{Offline: true}
	window := func(d time.Duration) Remote { return Remote{Keys: NewKeyWindow(d)} }
	idempotent, tenMinutes, minute := window(DefaultKeyWindow), window(10*time.Minute), time.Minute
	told := window(DefaultKeyWindow)
	for _, said := range []time.Duration{48 * time.Hour, 10 * time.Minute, time.Hour} { // the smallest counts
		told.Keys.Obey(said)
	}
	both24 := Remote{Keys: NewKeyWindow(DefaultKeyWindow), RetryUnknown: true}
	listening := Remote{Deliveries: &Deliveries{}}
	looking := Remote{Later: Later{Wait: time.Hour}, RetryUnknown: true}
	for _, c := range []struct {
		name   string
		remote Remote
		found  answers.Found
		want   Decision
	}{
		{"nothing", plain, answers.Found{}, Ask},
		{"nothing, offline", offline, answers.Found{}, Skip},
		{"fresh", plain, fresh, UseStored},
		{"fresh, with an unknown call", plain, both, UseStored},
		{"stale", plain, stale, Ask},
		{"stale, offline", offline, stale, UseStored},
		{"stale, with an unknown call", plain, staleUnknown, GiveUp},
		{"refused before", plain, refused(before), Ask},
		{"refused by this process's call", plain, refused(now), UseStored},
		{"refused, offline", offline, refused(before), UseStored},
		{"unknown", plain, unknown(before), GiveUp},
		{"unknown, offline", offline, unknown(before), GiveUp},
		{"unknown, idempotent", idempotent, unknown(now), Resend},
		{"unknown of an earlier process", retry, unknown(before), Resend},
		{"unknown of this process", retry, unknown(now), GiveUp},
		{"parked, without a listener", plain, parked(after), GiveUp},
		{"parked", listening, parked(after), Await},
		{"parked, its time over before this process", listening, parked(before), Await},
		{"parked, its time over in this process", listening, parked(now), GiveUp},
		{"parked, its time over, without a listener", plain, parked(before), GiveUp},
		{"parked, and asked for", looking, parked(after), Await},
		{"parked, and asked for, its time over before this process", looking, parked(before), Await},
		{"parked, and asked for, its time over in this process", looking, parked(began.Add(time.Second)), GiveUp},
		{"parked, its time over, idempotent", idempotent, parked(before), Resend},
		{"parked, its time over, its key old", idempotent, old, GiveUp},

		{"a young key", idempotent, aged(23*time.Hour + 29*minute), Resend},
		{"a key in the margin of half an hour", idempotent, aged(23*time.Hour + 30*minute), GiveUp},
		{"a key of yesterday", idempotent, aged(25 * time.Hour), GiveUp},
		{"a key of yesterday, in a window of days", window(72 * time.Hour), aged(25 * time.Hour), Resend},
		{"a key of ten minutes", tenMinutes, aged(9*minute - 1), Resend},
		{"a key in the margin of a tenth", tenMinutes, aged(9 * minute), GiveUp},
		{"a key that the service remembers for less", told, aged(9 * minute), GiveUp},
		{"a key that the service still remembers", told, aged(8 * minute), Resend},
		{"a key that the service said it forgets", idempotent, forgetful, GiveUp},
		{"a key that the service said it remembers", idempotent, remembered, Resend},
		{"a key without a time", idempotent, without, GiveUp},
		{"a key from the future", idempotent, aged(-minute), GiveUp},
		{"an attempt in the future", idempotent, sentLater, GiveUp},
		{"an old key, which the user wants to send", both24, unknown(before.Add(-48 * time.Hour)), Resend},
	} {
		if got := c.remote.Decide(resolution.Enrichment, c.found, began, now); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// The age of an answer is measured from the first process of a run: what an earlier process of it
// bought is never too old for a later one.
func TestAgesOfARun(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for _, f := range []struct {
		name             string
		runBegan, bought time.Time
		fresh            bool
	}{
		{"an hour old", time.Time{}, now.Add(-time.Hour), true},
		{"too old", time.Time{}, now.Add(-3 * time.Hour), false},
		{"bought by the run", now.Add(-4 * time.Hour), now.Add(-3 * time.Hour), true},
		{"before the run", now.Add(-4 * time.Hour), now.Add(-5 * time.Hour), true},
		{"too old when the run began", now.Add(-4 * time.Hour), now.Add(-7 * time.Hour), false},
		{"by a clock that was wrong", now.Add(time.Hour), now.Add(-3 * time.Hour), false},
	} {
		r := &Remote{RefreshMatch: 2 * time.Hour, RunBegan: f.runBegan}
		if got := r.Freshness(now).Of(answers.Matched, f.bought); got != f.fresh {
			t.Errorf("%s: fresh %t, want %t", f.name, got, f.fresh)
		}
	}
}

// TestOpenReason: what the rows of an open call say, which may not be sent again.
func TestOpenReason(t *testing.T) {
	for _, f := range []struct {
		op   resolution.Operation
		open answers.State
		want string
	}{
		{resolution.Enrichment, answers.Unknown, outcome.ReasonUnknownCall}, {resolution.Enrichment, answers.UnderWay, outcome.ReasonUnknownCall},
		{resolution.Enrichment, answers.Parked, outcome.ReasonNoCallback},
		{resolution.KeywordToLead, answers.Parked, outcome.ReasonUnfinished}, {resolution.KeywordToLead, answers.Unknown, outcome.ReasonUnknownCall},
	} {
		if got := openReason(f.op, answers.Found{Open: f.open}); got != f.want {
			t.Errorf("%s, %s: %s, want %s", f.op, f.open, got, f.want)
		}
	}
}
