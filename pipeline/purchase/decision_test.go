package purchase

import (
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

func TestStanding(t *testing.T) {
	began := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	before, now, after := began.Add(-time.Hour), began.Add(time.Minute), began.Add(time.Hour)
	fresh := answers.Found{Stored: true, Fresh: true, Answer: answers.Answer{Outcome: answers.Matched, Received: before}}
	stale := answers.Found{Stored: true, Answer: answers.Answer{Outcome: answers.Matched, Received: before}}
	refused := func(at time.Time) answers.Found {
		return answers.Found{Stored: true, Answer: answers.Answer{Outcome: answers.Refused, Received: at}}
	}
	unknown := func(sent time.Time) answers.Found { return answers.Found{Open: answers.Unknown, Sent: sent} }
	parked := func(deadline time.Time) answers.Found {
		return answers.Found{Open: answers.Parked, Sent: before, Deadline: deadline}
	}
	both := fresh
	both.Open, both.Sent = answers.Unknown, before
	staleUnknown := stale
	staleUnknown.Open, staleUnknown.Sent = answers.Unknown, before

	plain, idempotent, retry, offline := Remote{}, Remote{Idempotent: true}, Remote{RetryUnknown: true}, Remote{Offline: true}
	listening := Remote{Deliveries: &Deliveries{}}
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
		{"parked, its time over", listening, parked(before), GiveUp},
		{"parked, its time over, idempotent", idempotent, parked(before), Resend},
	} {
		if got := c.remote.Decide(resolution.Enrichment, c.found, began, now); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
