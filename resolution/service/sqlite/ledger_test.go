package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// script is one organization and one reservation to do things with.
type script struct {
	s   *Store
	org int64
	of  uuid.UUID
}

func (x script) change(t *testing.T, apply func(*tx) error) error {
	return x.s.db.writer.Write(t.Context(), apply)
}

func TestLedgerArithmetic(t *testing.T) {
	const op = resolution.KeywordToLead
	grant := func(n int64) func(*testing.T, script) error {
		return func(t *testing.T, x script) error {
			_, err := x.s.ChangeCredits(t.Context(), state.CreditChange{Organization: x.org, Credits: n, Note: "note", At: noon})
			return err
		}
	}
	settle := func(n int64) func(*testing.T, script) error {
		return func(t *testing.T, x script) error {
			_, err := x.s.Settle(t.Context(), state.Charge{Organization: x.org, Credits: n, At: noon})
			return err
		}
	}
	reserved := func(kind state.Kind) func(int64) func(*testing.T, script) error {
		return func(n int64) func(*testing.T, script) error {
			return func(t *testing.T, x script) error {
				return x.change(t, func(tx *tx) error {
					return tx.enter(entry{organization: x.org, kind: kind, credits: n, reserved: true, resolution: x.of, operation: op, at: noon})
				})
			}
		}
	}
	reserve, capture, release := reserved(state.Reserve), reserved(state.Capture), reserved(state.Release)
	type step = func(*testing.T, script) error
	insufficient := &state.InsufficientError{}
	s := serve(t, t.TempDir())
	for _, c := range []struct {
		name  string
		steps []step // all but the last succeed
		last  error
		want  state.Balance
		lines int
	}{
		{"grant", []step{grant(5)}, nil, state.Balance{Available: 5, Reserved: 0}, 1},
		{"grants add up", []step{grant(5), grant(7)}, nil, state.Balance{Available: 12, Reserved: 0}, 2},
		{"grant of nothing", []step{grant(0)}, resolution.ErrInvalid, state.Balance{Available: 0, Reserved: 0}, 0},
		{"grant of too many", []step{grant(creditLimit + 1)}, resolution.ErrInvalid, state.Balance{Available: 0, Reserved: 0}, 0},
		{"grants to too many", []step{grant(creditLimit), grant(1)}, resolution.ErrInvalid, state.Balance{Available: creditLimit, Reserved: 0}, 1},
		{"reserved ones count too", []step{grant(creditLimit), reserve(9), grant(1)}, resolution.ErrInvalid, state.Balance{Available: creditLimit - 9, Reserved: 9}, 2},
		{"adjust down to nothing", []step{grant(5), grant(-5)}, nil, state.Balance{Available: 0, Reserved: 0}, 2},
		{"adjust below nothing", []step{grant(5), grant(-6)}, insufficient, state.Balance{Available: 5, Reserved: 0}, 1},
		{"adjust by nothing", []step{grant(0)}, resolution.ErrInvalid, state.Balance{Available: 0, Reserved: 0}, 0},
		{"settle", []step{grant(5), settle(2)}, nil, state.Balance{Available: 3, Reserved: 0}, 2},
		{"settle the last", []step{grant(5), settle(5)}, nil, state.Balance{Available: 0, Reserved: 0}, 2},
		{"settle one too many", []step{grant(5), settle(6)}, insufficient, state.Balance{Available: 5, Reserved: 0}, 1},
		{"settle nothing", []step{grant(5), settle(0)}, nil, state.Balance{Available: 5, Reserved: 0}, 1},
		{"settle less", []step{grant(5), settle(-1)}, resolution.ErrInvalid, state.Balance{Available: 5, Reserved: 0}, 1},
		{"reserve", []step{grant(5), reserve(3)}, nil, state.Balance{Available: 2, Reserved: 3}, 2},
		{"reserve one too many", []step{grant(5), reserve(6)}, insufficient, state.Balance{Available: 5, Reserved: 0}, 1},
		{"reserved ones are not available", []step{grant(5), reserve(3), settle(3)}, insufficient, state.Balance{Available: 2, Reserved: 3}, 2},
		{"nor to adjust", []step{grant(5), reserve(3), grant(-3)}, insufficient, state.Balance{Available: 2, Reserved: 3}, 2},
		{"reserve nothing", []step{reserve(0)}, nil, state.Balance{Available: 0, Reserved: 0}, 0},
		{"capture some, release the rest", []step{grant(5), reserve(4), capture(3), release(1)}, nil, state.Balance{Available: 2, Reserved: 0}, 4},
		{"capture all", []step{grant(5), reserve(4), capture(4)}, nil, state.Balance{Available: 1, Reserved: 0}, 3},
		{"release all", []step{grant(5), reserve(4), release(4)}, nil, state.Balance{Available: 5, Reserved: 0}, 3},
		{"capture and release nothing", []step{grant(5), reserve(4), capture(0), release(0)}, nil, state.Balance{Available: 1, Reserved: 4}, 2},
		{"capture more than reserved", []step{grant(5), reserve(4), capture(5)}, resolution.ErrInvalid, state.Balance{Available: 1, Reserved: 4}, 2},
		{"release more than is left", []step{grant(5), reserve(4), capture(3), release(2)}, resolution.ErrInvalid, state.Balance{Available: 2 - 1, Reserved: 1}, 3},
		{"capture without reservation", []step{grant(5), capture(1)}, resolution.ErrInvalid, state.Balance{Available: 5, Reserved: 0}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := script{s, organization(t, s, c.name, 0), uuid.Must(uuid.NewV7())}
			for i, step := range c.steps {
				err := step(t, x)
				if want := c.last; i < len(c.steps)-1 || want == nil {
					if err != nil {
						t.Fatalf("step %d: %v", i+1, err)
					}
				} else if want == error(insufficient) {
					if !errors.As(err, new(*state.InsufficientError)) || !errors.Is(err, resolution.ErrDenied) {
						t.Errorf("step %d: %v, want an InsufficientError", i+1, err)
					}
				} else if !errors.Is(err, want) {
					t.Errorf("step %d: %v, want %v", i+1, err, want)
				}
			}
			if b, err := s.Balance(t.Context(), x.org); err != nil || b != c.want {
				t.Errorf("balance %+v (%v), want %+v", b, err, c.want)
			}
			lines, err := s.Ledger(t.Context(), x.org, 0, 1<<20)
			var sum state.Balance
			for _, e := range lines {
				sum.Available, sum.Reserved = sum.Available+e.Available, sum.Reserved+e.Reserved
			}
			if err != nil || len(lines) != c.lines || sum != c.want {
				t.Errorf("%d lines with %+v (%v), want %d", len(lines), sum, err, c.lines)
			}
		})
	}
}

// A reservation is one resolution's: another cannot be paid from it.
func TestReservationsAreApart(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 10)
	one, other := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	err := s.db.writer.Write(t.Context(), func(tx *tx) error {
		return tx.enter(entry{organization: org, kind: state.Reserve, credits: 5, resolution: one, at: noon})
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]uuid.UUID{"another": other, "none": uuid.Nil} {
		err := s.db.writer.Write(t.Context(), func(tx *tx) error {
			return tx.enter(entry{organization: org, kind: state.Release, credits: 1, resolution: of, at: noon})
		})
		if !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("release for %s: %v, want ErrInvalid", name, err)
		}
	}
}

// TestReservationThatWasRolledBack: what a group reserved that could not be stored is not there for the
// next one.
func TestReservationThatWasRolledBack(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 10)
	of := uuid.Must(uuid.NewV7())
	change := func(kind state.Kind, note string) error {
		return s.db.writer.Write(t.Context(), func(tx *tx) error {
			return tx.enter(entry{organization: org, kind: kind, credits: 5, resolution: of, note: note, at: noon})
		})
	}
	pages := func(most int) {
		if _, err := s.db.writer.Conn().ExecContext(t.Context(), fmt.Sprint("PRAGMA max_page_count = ", most)); err != nil {
			t.Fatal(err)
		}
	}
	pages(1) // of the present size, that is
	if err := change(state.Reserve, strings.Repeat("x", 1<<20)); !errors.Is(err, resolution.ErrUnavailable) {
		t.Fatalf("a full disk: %v", err)
	}
	pages(1e9)
	if err := change(state.Release, ""); !errors.Is(err, resolution.ErrInvalid) {
		t.Errorf("released: %v, want ErrInvalid", err)
	}
	audit(t, s)
}

func TestInsufficientSaysHowMany(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 3)
	_, err := s.Settle(t.Context(), state.Charge{Organization: org, Credits: 5, At: noon})
	var insufficient *state.InsufficientError
	if !errors.As(err, &insufficient) || *insufficient != (state.InsufficientError{Required: 5, Balance: 3}) {
		t.Errorf("got %v, want 5 required, 3 available", err)
	}
}

func TestLedger(t *testing.T) {
	s := serve(t, t.TempDir())
	org, other := organization(t, s, "Acme", 10), organization(t, s, "Beta", 10)
	of := uuid.Must(uuid.NewV7())
	for _, charge := range []state.Charge{
		{Organization: other, Credits: 1, At: noon},
		{Organization: org, Credits: 2, Resolution: of, Operation: resolution.Enrichment, At: noon.Add(time.Second)},
	} {
		if _, err := s.Settle(t.Context(), charge); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ChangeCredits(t.Context(), state.CreditChange{Organization: org, Credits: -3, Note: "goodwill taken back", At: noon.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	want := []state.Entry{
		{Seq: 1, At: noon, Kind: state.Grant, Credits: 10, Available: 10},
		{Seq: 4, At: noon.Add(time.Second), Kind: state.Capture, Credits: 2, Available: -2, Resolution: of, Operation: resolution.Enrichment},
		{Seq: 5, At: noon.Add(time.Minute), Kind: state.Adjust, Credits: -3, Available: -3, Note: "goodwill taken back"},
	}
	got, err := s.Ledger(t.Context(), org, 0, 100)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	for _, c := range []struct {
		after int64
		limit int
		want  []state.Entry
	}{{0, 2, want[:2]}, {4, 2, want[2:]}, {5, 2, nil}} {
		if got, err := s.Ledger(t.Context(), org, c.after, c.limit); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d after %d: got %+v (%v), want %+v", c.limit, c.after, got, err, c.want)
		}
	}
}

// A charge that is refused leaves neither reply nor callback; one that is made
// leaves all it asked for, also when it costs nothing.
func TestSettleIsWhole(t *testing.T) {
	for _, c := range []struct {
		credits                    int64
		reply, callback            bool
		err                        error
		lines, replies, deliveries int // of the settle alone
		left                       int64
	}{
		{2, true, true, nil, 1, 1, 1, 1},
		{2, false, false, nil, 1, 0, 0, 1},
		{0, true, true, nil, 0, 1, 1, 3},
		{0, false, true, nil, 0, 0, 1, 3},
		{0, false, false, nil, 0, 0, 0, 3},
		{4, true, true, resolution.ErrDenied, 0, 0, 0, 0},
	} {
		t.Run(fmt.Sprint(c.credits, c.reply, c.callback), func(t *testing.T) {
			s := serve(t, t.TempDir())
			org := organization(t, s, "Acme", 3)
			charge := state.Charge{Organization: org, Resolution: uuid.Must(uuid.NewV7()), Operation: resolution.EmailToHEM, Credits: c.credits, At: noon}
			if c.reply {
				charge.Reply = &state.Reply{Key: [32]byte{1}, Status: 200}
			}
			if c.callback {
				charge.Callback = &state.Callback{WebhookID: "msg_1", Organization: org, Resolution: charge.Resolution,
					Receiver: "example.com:443", URL: "https://example.com/", Body: []byte("{}"), Due: noon}
			}
			left, err := s.Settle(t.Context(), charge)
			if !errors.Is(err, c.err) || left != c.left {
				t.Errorf("%d left, %v; want %d, %v", left, err, c.left, c.err)
			}
			for table, want := range map[string]int{"ledger": 1 + c.lines, "replies": c.replies, "outbox": c.deliveries} {
				if got := rowsOf(t, s, table); got != want {
					t.Errorf("%d rows in %s, want %d", got, table, want)
				}
			}
		})
	}
}

func TestSettleRefuses(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 3)
	for name, c := range map[string]struct {
		charge state.Charge
		want   error
	}{
		"no organization":                 {state.Charge{Organization: 9, Credits: 1}, state.ErrNotFound},
		"no organization, nothing to pay": {state.Charge{Organization: 9}, state.ErrNotFound},
		"no organization, a reply":        {state.Charge{Organization: 9, Reply: &state.Reply{}}, state.ErrNotFound},
		"another's callback":              {state.Charge{Organization: org, Callback: &state.Callback{Organization: 9}}, resolution.ErrInvalid},
		"far too many":                    {state.Charge{Organization: org, Credits: creditLimit + 1}, resolution.ErrInvalid},
	} {
		if _, err := s.Settle(t.Context(), c.charge); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if n := audit(t, s); n != 1 {
		t.Errorf("%d lines, want the grant alone", n)
	}
}

func rowsOf(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	if err := s.db.reads.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLatestEntries: the pages together have every entry that is asked for, once, however
// far apart they are.
func TestLatestEntries(t *testing.T) {
	before := scannedEntries
	scannedEntries = 7
	defer func() { scannedEntries = before }()
	s := serve(t, t.TempDir())
	org, other := organization(t, s, "Acme", 1000), organization(t, s, "Other", 1000)
	for i := range 40 {
		for _, o := range []int64{org, other} {
			operation := resolution.Enrichment
			if i%20 == 3 {
				operation = resolution.IPToCompany
			}
			if _, err := s.Settle(t.Context(), state.Charge{Organization: o, Resolution: uuid.Must(uuid.NewV7()), Operation: operation, Credits: 1, At: noon}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		which state.Entries
		want  int
	}{
		{state.Entries{}, 41},
		{state.Entries{Kind: state.Grant}, 1},
		{state.Entries{Operation: resolution.IPToCompany}, 2},
		{state.Entries{Operation: resolution.IPToCompany, Kind: state.Grant}, 0},
		{state.Entries{Single: true}, 40},
	} {
		var all []state.Entry
		for pages := 0; ; pages++ {
			entries, older, err := s.LatestEntries(t.Context(), org, c.which, 5)
			if err != nil || len(entries) > 5 || pages > 20 {
				t.Fatalf("%+v: %d entries on page %d, %v", c.which, len(entries), pages, err)
			}
			all = append(all, entries...)
			if c.which.Before = older; older == 0 {
				break
			}
		}
		if !slices.IsSortedFunc(all, func(a, b state.Entry) int { return int(b.Seq - a.Seq) }) || len(all) != c.want {
			t.Errorf("%+v: %d entries, want %d in order", c.which, len(all), c.want)
		}
	}
}
