package sqlite

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func TestScopesAreKept(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 0)
	k := state.Key{Organization: org, Hash: [32]byte{1}, Created: noon, Operations: []string{"enrichment", "account"},
		Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}}
	if _, err := s.AddKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	c, err := s.Credentials(t.Context())
	if err != nil || len(c.Keys) != 1 || !slices.Equal(c.Keys[0].Operations, k.Operations) || !slices.Equal(c.Keys[0].Networks, k.Networks) {
		t.Errorf("got %+v, %v", c.Keys, err)
	}
}

// Calls with test keys have a ledger of their own, beside the one that pays.
func TestTestKeysHaveTheirOwnLedger(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 10)
	var keys []state.Key
	for n := range 2 {
		k, err := s.AddKey(t.Context(), state.Key{Organization: org, Test: true, Hash: [32]byte{byte(n)}, Created: noon})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	test := keys[0].Organization
	if test == org || keys[1].Organization != test {
		t.Errorf("test keys belong to %d and %d, and their owner is %d", test, keys[1].Organization, org)
	}
	if _, err := s.Settle(t.Context(), state.Charge{Organization: test, Key: keys[0].ID, Credits: 3, At: noon}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]int64{org: 10, test: testCredits - 3} {
		if b, err := s.Balance(t.Context(), id); err != nil || b.Available != want {
			t.Errorf("%d has %d (%v), want %d", id, b.Available, err, want)
		}
	}
	if _, err := s.AddKey(t.Context(), state.Key{Organization: test, Hash: [32]byte{9}, Created: noon}); !errors.Is(err, resolution.ErrInvalid) {
		t.Errorf("a live key of the test organization: %v, want ErrInvalid", err)
	}
	if listed, err := s.Keys(t.Context(), state.KeyChoice{Organization: org}); err != nil || len(listed) != 2 || !listed[0].Test {
		t.Errorf("keys of the owner: %+v, %v", listed, err)
	}
	if all, err := s.Organizations(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("organizations %+v, %v", all, err)
	}
	if o, err := s.TestOrganization(t.Context(), org, noon); err != nil || o.ID != test || o.TestOf != org {
		t.Errorf("test organization %+v, %v", o, err)
	}
	audit(t, s)
}

func TestRenameAndSuspend(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 0)
	organization(t, s, "Beta", 0)
	for _, c := range []struct {
		name string
		want error
	}{{"Beta", state.ErrExists}, {" ", resolution.ErrInvalid}, {"Acme", nil}, {"Acme Rockets", nil}} {
		if err := s.RenameOrganization(t.Context(), org, c.name); !errors.Is(err, c.want) {
			t.Errorf("renamed to %q: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := s.FindOrganization(t.Context(), "Acme"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the old name: %v", err)
	}
	for _, at := range []time.Time{noon, {}} {
		before, _ := s.CredentialsVersion(t.Context())
		if err := s.SuspendOrganization(t.Context(), org, at); err != nil {
			t.Fatal(err)
		}
		if o, err := s.FindOrganization(t.Context(), "Acme Rockets"); err != nil || !o.Suspended.Equal(at) {
			t.Errorf("suspended %v (%v), want %v", o.Suspended, err, at)
		}
		if after, _ := s.CredentialsVersion(t.Context()); after == before {
			t.Error("a running service does not see it")
		}
	}
	if err := s.SuspendOrganization(t.Context(), 99, noon); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("not suspended: %v", err)
	}
}

// A deleted organization leaves its ledger and nothing else, and its name is
// free again.
func TestDeleteOrganization(t *testing.T) {
	d := newDesk(t)
	org, other := d.organization("Gone", 50), d.organization("Stays", 50)
	for _, o := range []int64{org, other} {
		k := state.Key{Organization: o, Hash: [32]byte{byte(o)}, Created: noon}
		if _, err := d.AddKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		k.Test, k.Hash[1] = true, 1
		if _, err := d.AddKey(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		d.create(o)
		c := d.callback("receiver.example:443")
		c.Organization = o
		if _, err := d.Settle(t.Context(), state.Charge{Organization: o, Credits: 1, Callback: c, At: d.now}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.DeleteOrganization(t.Context(), org, d.now); err != nil {
		t.Fatal(err)
	}
	c, err := d.Credentials(t.Context())
	if err != nil || len(c.Organizations) != 4 || len(c.Keys) != 2 {
		t.Errorf("credentials %+v, %v: want those of the other organization, and two of the desk", c, err)
	}
	for _, table := range []string{"resolutions", "outbox", "lanes"} {
		var gone, stays int
		if err := d.db.reads.QueryRowContext(t.Context(), "SELECT coalesce(sum(organization = ?), 0), coalesce(sum(organization = ?), 0) FROM "+table, org, other).Scan(&gone, &stays); err != nil || gone != 0 || stays == 0 {
			t.Errorf("%s: %d rows left, %d of the other (%v)", table, gone, stays, err)
		}
	}
	if _, err := d.Settle(t.Context(), state.Charge{Organization: org, Credits: 1, At: d.now}); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("charged: %v, want ErrNotFound", err)
	}
	if _, err := d.FindOrganization(t.Context(), "Gone"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("found: %v, want ErrNotFound", err)
	}
	if entries, err := d.Ledger(t.Context(), org, 0, 100); err != nil || len(entries) < 4 {
		t.Errorf("ledger %+v, %v", entries, err)
	}
	audit(t, d.Store)
	d.organization("Gone", 1)
}

// A deletion that was interrupted is finished when old data is removed.
func TestPurgeFinishesDeletions(t *testing.T) {
	d := newDesk(t)
	org, other := d.organization("Gone", 50), d.organization("Stays", 50)
	for _, o := range []int64{org, other} {
		d.create(o)
		c := d.callback("receiver.example:443")
		c.Organization = o
		if _, err := d.Settle(t.Context(), state.Charge{Organization: o, Credits: 1, Callback: c, At: d.now}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.db.writer.Write(t.Context(), func(t *tx) error {
		return t.sql.Exec("UPDATE organizations SET deleted = ? WHERE id = ?", millis(d.now), org)
	}); err != nil {
		t.Fatal(err)
	}
	p, err := d.Purge(t.Context(), d.now, state.DefaultRetention())
	if err != nil || p.Deleted != 2 {
		t.Errorf("purged %+v, %v", p, err)
	}
	if jobs, posts := d.count("resolutions"), d.count("outbox"); jobs != 1 || posts != 1 {
		t.Errorf("%d jobs and %d callbacks are left, want those of the other organization", jobs, posts)
	}
}

// Requests and charges of a day are added up by operation and key.
func TestUsage(t *testing.T) {
	s := serve(t, t.TempDir())
	org := organization(t, s, "Acme", 100)
	k, err := s.AddKey(t.Context(), state.Key{Organization: org, Label: "nightly", Hash: [32]byte{1}, Created: noon})
	if err != nil {
		t.Fatal(err)
	}
	next := noon.Add(24 * time.Hour)
	for _, c := range []state.Charge{
		{Key: k.ID, Credits: 2, Operation: resolution.Enrichment, At: noon},
		{Key: k.ID, Credits: 2, Operation: resolution.Enrichment, At: noon.Add(time.Hour)},
		{Credits: 1, Operation: resolution.EmailToHEM, At: next},
	} {
		c.Organization = org
		if _, err := s.Settle(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CountRequests(t.Context(), []state.Requests{
		{Organization: org, Key: k.ID, Day: day(noon), Operation: "enrichment", Total: 5, Limited: 3},
		{Organization: 99, Day: day(noon), Operation: "enrichment", Total: 5},
	}); err != nil {
		t.Fatal(err)
	}
	first := state.Usage{Day: noon.Truncate(24 * time.Hour), Operation: "enrichment", Key: k.Public, KeyLabel: "nightly", Requests: 5, Limited: 3, Charges: 2, Credits: 4}
	second := state.Usage{Day: next.Truncate(24 * time.Hour), Operation: "email_to_hem", Charges: 1, Credits: 1}
	for _, c := range []struct {
		from, to time.Time
		want     []state.Usage
	}{{noon, next, []state.Usage{first, second}}, {noon, noon, []state.Usage{first}}, {next.Add(24 * time.Hour), next.Add(48 * time.Hour), nil}} {
		if got, err := s.Usage(t.Context(), org, c.from, c.to); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("from %v to %v: %+v (%v), want %+v", c.from, c.to, got, err, c.want)
		}
	}
}
