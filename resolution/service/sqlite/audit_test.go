package sqlite

import "testing"

// audit checks the ledger's promise for all organizations, or for those given:
// its sums and its usage are those of its lines, and grants + adjustments − captures − open
// reservations = available ≥ 0. All of one is read in one statement, so it may
// run while the state is used. It returns the number of lines.
func audit(t testing.TB, s *Store, organizations ...int64) (lines int) {
	t.Helper()
	if len(organizations) == 0 {
		all, err := s.Organizations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			organizations = append(organizations, a.Organization.ID)
		}
	}
	for _, id := range organizations {
		lines += auditOne(t, s, id)
	}
	auditOutbox(t, s)
	auditKeys(t, s)
	return lines
}

// auditKeys holds what keys have spent to the ledger, and to their limits.
func auditKeys(t testing.TB, s *Store) {
	t.Helper()
	var wrong, over int
	err := s.db.reads.QueryRowContext(t.Context(), `SELECT
		count(*) FILTER (WHERE k.spent <> coalesce((SELECT -sum(available) FROM ledger WHERE key = k.id), 0)),
		count(*) FILTER (WHERE k.spent > k.spending_limit) FROM keys k`).Scan(&wrong, &over)
	if err != nil || wrong+over > 0 {
		t.Errorf("%d keys have not spent what the ledger says, %d more than they may (%v)", wrong, over, err)
	}
}

// auditOutbox holds the numbers of undelivered callbacks, and their lanes, to the
// outbox.
func auditOutbox(t testing.TB, s *Store) {
	t.Helper()
	var counts, bodies, lanes int
	err := s.db.reads.QueryRowContext(t.Context(), `SELECT
		(SELECT count(*) FROM undelivered WHERE count <> (`+countOutbox+`)),
		(SELECT count(*) FROM outbox WHERE kept = 1 AND id NOT IN (SELECT delivery FROM bodies)),
		(SELECT count(*) FROM (SELECT organization, receiver, min(due) AS due FROM outbox WHERE state = 'pending' GROUP BY 1, 2) p
			LEFT JOIN lanes l USING(organization, receiver) WHERE l.due IS NULL OR l.due > p.due)`).Scan(&counts, &bodies, &lanes)
	if err != nil || counts+bodies+lanes > 0 {
		t.Errorf("%d states with a wrong number, %d callbacks without a body, %d lanes without a waiter (%v)", counts, bodies, lanes, err)
	}
}

func auditOne(t testing.TB, s *Store, id int64) (lines int) {
	t.Helper()
	var available, reserved, sumAvailable, sumReserved, given, captured, open int64
	err := s.db.reads.QueryRowContext(t.Context(), `
		SELECT o.available, o.reserved, count(l.seq), coalesce(sum(l.available), 0), coalesce(sum(l.reserved), 0),
			coalesce(sum(l.credits) FILTER (WHERE l.kind IN ('grant', 'adjust')), 0),
			coalesce(sum(l.credits) FILTER (WHERE l.kind = 'capture'), 0),
			(SELECT coalesce(sum(open), 0) FROM (SELECT sum(reserved) AS open FROM ledger
				WHERE organization = o.id GROUP BY resolution) WHERE open > 0)
		FROM organizations AS o LEFT JOIN ledger AS l ON l.organization = o.id WHERE o.id = ?`, id).
		Scan(&available, &reserved, &lines, &sumAvailable, &sumReserved, &given, &captured, &open)
	if err != nil {
		t.Fatal(err)
	}
	if available != sumAvailable || reserved != sumReserved {
		t.Errorf("organization %d has %d and %d reserved, its ledger says %d and %d", id, available, reserved, sumAvailable, sumReserved)
	}
	if given-captured-open != available || available < 0 || open != reserved {
		t.Errorf("organization %d: %d given − %d captured − %d open = %d available (%d reserved)", id, given, captured, open, available, reserved)
	}
	var charges, spent, counted, used int64
	err = s.db.reads.QueryRowContext(t.Context(), `SELECT
		(SELECT count(*) FROM ledger WHERE organization = ?1 AND kind = 'capture'), (SELECT coalesce(sum(credits), 0) FROM ledger WHERE organization = ?1 AND kind = 'capture'),
		coalesce(sum(charges), 0), coalesce(sum(credits), 0) FROM usage WHERE organization = ?1`, id).Scan(&charges, &spent, &counted, &used)
	if err != nil || charges != counted || spent != used {
		t.Errorf("organization %d: usage has %d credits of %d charges, its ledger %d of %d (%v)", id, used, counted, spent, charges, err)
	}
	return lines
}
