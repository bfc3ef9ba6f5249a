package sqlite

import (
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// TestUnsyncedAnswer kills a service at each operation of a charge, and then cuts the power of
// the next one, which has read its answer: what was read once is there for ever.
func TestUnsyncedAnswer(t *testing.T) {
	read := 0
	for last, alive := 1, false; !alive; last++ {
		dir := t.TempDir()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		s, err := Serve(dir)
		must(err)
		o, err := s.CreateOrganization(t.Context(), "Customer", 10, nil, time.Now())
		must(err)
		must(s.Close())
		w := worldtest.New(uint64(last), nil)
		d := worldtest.NewDisk(w)
		free, err := d.Mount(dir)
		must(err)
		defer free()

		w.Begin(t.Context(), last)
		reply := &state.Reply{Key: [32]byte{1}, Status: 200, Body: []byte("{}")}
		if s, err = Serve(dir); err == nil {
			_, err = s.Settle(t.Context(), state.Charge{Organization: o.ID, Credits: 3, Reply: reply, At: time.Now()})
			alive = err == nil
			_ = s.Close()
		}
		w.Crash()
		must(d.Remount(dir, false))
		w.Begin(t.Context(), 0)
		s, err = Serve(dir)
		must(err)
		before, err := s.Reply(t.Context(), reply.Key, time.Now())
		must(err)
		w.Crash()
		_ = s.Close()
		must(d.Remount(dir, true))
		w.Begin(t.Context(), 0)
		s, err = Serve(dir)
		must(err)
		after, err := s.Reply(t.Context(), reply.Key, time.Now())
		must(err)
		must(s.Close())
		if before != nil {
			read++
			if after == nil {
				t.Errorf("operation %d: an answer that was read is gone", last)
			}
		}
	}
	if read < 2 {
		t.Errorf("%d answers were read", read)
	}
}
