package sqlite

import (
	"strings"
	"testing"
)

func TestLedgerIsAppendOnly(t *testing.T) {
	s := serve(t, t.TempDir())
	organization(t, s, "Acme", 5)
	for _, c := range []struct{ statement, want string }{
		{"UPDATE ledger SET credits = 6", "append-only"},
		{"DELETE FROM ledger", "append-only"},
		{"INSERT OR REPLACE INTO ledger SELECT * FROM ledger", "append-only"},
		{"INSERT INTO ledger(at, organization, kind, credits, available, reserved) VALUES (0, 1, 'grant', 1, 2, 0)", "CHECK"},
		{"INSERT INTO ledger(at, organization, kind, credits, available, reserved) VALUES (0, 1, 'reserve', 1, -1, 0)", "CHECK"},
		{"INSERT INTO ledger(at, organization, kind, credits, available, reserved) VALUES (0, 1, 'gift', 1, 1, 0)", "CHECK"},
		{"INSERT INTO ledger(at, organization, kind, credits, available, reserved) VALUES (0, 9, 'grant', 1, 1, 0)", "FOREIGN KEY"},
		{"UPDATE organizations SET available = -1", "CHECK"},
	} {
		err := s.db.writer.Write(t.Context(), func(t *tx) error { return t.sql.Exec(c.statement) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.statement, err, c.want)
		}
	}
	if n := audit(t, s); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
}
