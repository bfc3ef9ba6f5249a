package sqlite

import "testing"

// audit checks that the database is whole, that its sums agree, and that no key is above its
// limit. It may run while the state is used. It returns the number of lines in the ledger.
func audit(t testing.TB, s *Store) (lines int) {
	t.Helper()
	if err := s.FindDamage(t.Context()); err != nil {
		t.Error(err)
	}
	var over int
	err := s.db.reads.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM ledger), (SELECT count(*) FROM keys WHERE spent > spending_limit)").Scan(&lines, &over)
	if err != nil || over > 0 {
		t.Errorf("%d keys spent more than they may (%v)", over, err)
	}
	return lines
}
