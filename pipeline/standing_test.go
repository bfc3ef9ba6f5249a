package pipeline

import (
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
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
	listening := Remote{Later: &Later{}}
	for _, c := range []struct {
		name   string
		remote Remote
		found  answers.Found
		want   standing
	}{
		{"nothing", plain, answers.Found{}, toAsk},
		{"nothing, offline", offline, answers.Found{}, toSkip},
		{"fresh", plain, fresh, toAnswer},
		{"fresh, with an unknown call", plain, both, toAnswer},
		{"stale", plain, stale, toAsk},
		{"stale, offline", offline, stale, toAnswer},
		{"stale, with an unknown call", plain, staleUnknown, toFail},
		{"refused before", plain, refused(before), toAsk},
		{"refused by this process's call", plain, refused(now), toAnswer},
		{"refused, offline", offline, refused(before), toAnswer},
		{"unknown", plain, unknown(before), toFail},
		{"unknown, offline", offline, unknown(before), toFail},
		{"unknown, idempotent", idempotent, unknown(now), toResend},
		{"unknown of an earlier process", retry, unknown(before), toResend},
		{"unknown of this process", retry, unknown(now), toFail},
		{"parked, nobody listens", plain, parked(after), toFail},
		{"parked", listening, parked(after), toAwait},
		{"parked, its time over", listening, parked(before), toFail},
		{"parked, its time over, idempotent", idempotent, parked(before), toResend},
	} {
		if got := c.remote.standing(c.found, began, now); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
