package stats

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// TestCallRecords: the records of two processes, stored and added, show what one
// process with the requests of both shows.
func TestCallRecords(t *testing.T) {
	var one, first, second CallCounters
	for i := range 1000 {
		m, took, class := &first, time.Duration(i*i)*time.Microsecond, CallAnswered
		if i%3 == 0 {
			m = &second
		}
		if i%10 == 0 {
			class = "limited"
		}
		for _, m := range []*CallCounters{m, &one} {
			m.Called(took, class)
			m.Retried("unavailable")
			m.Quarantined(2)
		}
	}
	waits := func(m *CallCounters, d time.Duration) {
		m.Paced(func() pace.Snapshot { return pace.Snapshot{Waited: map[pace.Reason]time.Duration{pace.Rate: d}} })
	}
	waits(&first, time.Second)
	waits(&second, 2*time.Second)
	waits(&one, 3*time.Second)
	var sum CallRecord
	for _, m := range []*CallCounters{&first, &second, {}} {
		data, err := json.Marshal(m.Record())
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 16<<10 {
			t.Errorf("a record takes %d bytes", len(data))
		}
		var read CallRecord
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		sum.Add(read)
	}
	if got, want := sum.Snapshot(), one.Snapshot(); !reflect.DeepEqual(got, want) || got.Calls != 1000 || got.P99 == 0 {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestPacedSince: waits before do not count.
func TestPacedSince(t *testing.T) {
	waited := time.Second
	look := func() pace.Snapshot {
		return pace.Snapshot{Waited: map[pace.Reason]time.Duration{pace.Rate: waited, pace.Dead: time.Minute}}
	}
	var m CallCounters
	m.PacedSince(look)
	waited = 3 * time.Second
	if got := m.Snapshot().Waits; len(got) != 1 || got[string(pace.Rate)] != 2*time.Second {
		t.Errorf("got %v", got)
	}
}
