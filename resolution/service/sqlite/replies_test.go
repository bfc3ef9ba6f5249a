package sqlite

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

func TestReply(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 10)
	settle := func(r state.Reply, at time.Time) (int64, error) {
		return s.Settle(t.Context(), state.Charge{Organization: org, Credits: 1, Reply: &r, At: at})
	}
	reply := func(key byte, now time.Time) *state.Reply {
		t.Helper()
		r, err := s.Reply(t.Context(), [32]byte{key}, now)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := state.Reply{Key: [32]byte{1}, Fingerprint: [32]byte{9: 9}, Status: 200, Body: []byte(`{"success":true}`)}
	if reply(1, noon) != nil {
		t.Error("a reply before there was one")
	}
	if _, err := settle(first, noon); err != nil {
		t.Fatal(err)
	}
	same := func(got *state.Reply, want state.Reply) bool {
		return got != nil && got.Key == want.Key && got.Fingerprint == want.Fingerprint && got.Status == want.Status && bytes.Equal(got.Body, want.Body)
	}
	const life = 24 * time.Hour
	for after, want := range map[time.Duration]bool{0: true, life - time.Millisecond: true, life: false} {
		if got := reply(1, noon.Add(after)); same(got, first) != want || !want && got != nil {
			t.Errorf("%v later: %v, want one: %v", after, got, want)
		}
	}
	if reply(2, noon) != nil {
		t.Error("a reply under another key")
	}

	second := state.Reply{Key: [32]byte{1}, Status: 200} // without a body
	if _, err := settle(second, noon.Add(life-time.Millisecond)); !errors.Is(err, state.ErrReplyStored) {
		t.Errorf("a second reply: %v, want ErrReplyStored", err)
	}
	if got := reply(1, noon); !same(got, first) {
		t.Errorf("now there is %v, want the first", got)
	}
	if b, err := s.Balance(t.Context(), org); err != nil || b.Available != 9 {
		t.Errorf("%d credits (%v): the second was charged", b.Available, err)
	}

	if _, err := settle(second, noon.Add(life)); err != nil {
		t.Errorf("in place of an expired one: %v", err)
	}
	if got := reply(1, noon.Add(life)); !same(got, second) {
		t.Errorf("now there is %v, want the second", got)
	}
}

// Two replies under one key in the same group are one too many as well.
func TestReplyTwiceInOneGroup(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 10)
	r := state.Reply{Key: [32]byte{1}, Status: 200}
	results := together(s, 2, func(int) error {
		_, err := s.Settle(t.Context(), state.Charge{Organization: org, Credits: 1, Reply: &r, At: noon})
		return err
	})
	stored := 0
	for _, err := range results {
		if err == nil {
			stored++
		} else if !errors.Is(err, state.ErrReplyStored) {
			t.Error(err)
		}
	}
	if b, err := s.Balance(t.Context(), org); stored != 1 || err != nil || b.Available != 9 {
		t.Errorf("%d stored, %d credits left (%v)", stored, b.Available, err)
	}
}
