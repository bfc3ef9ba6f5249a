package directory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/leadetl/leadetl/internal/tabular"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/ipaddr"
)

var visitColumns = tabular.Columns{
	Names:    []string{"ip", "network_url", "seen_at", "confidence"},
	Required: []string{"ip", "network_url"},
}

const visitSchema = `
CREATE TABLE visits(ip TEXT NOT NULL, network_url TEXT NOT NULL, seen_at INTEGER, confidence REAL);`

const visitIndex = `
CREATE INDEX visits_ip ON visits(ip, confidence DESC, seen_at DESC, network_url);`

// DefaultConfidence is what a visit without one counts: an address may stand
// for a household or an office, so it is even odds and no more.
const DefaultConfidence = 0.5

func (im *importer) visits(ctx context.Context, r *imports.Report) (entry, error) {
	l := loading{
		want:   visitColumns,
		schema: visitSchema,
		tables: []tableColumns{{"visits", visitColumns.Names}},
		index:  visitIndex,
		keys:   "SELECT count(DISTINCT ip) FROM visits",
	}
	return im.load(ctx, Visits, r, l, func(row tabular.Row, into []*inserter, sum *imports.Content) error {
		c := row.Cells
		addr, reason := publicAddr(c[0])
		if reason != "" {
			r.Skip(row.Line, "ip: "+reason)
			return nil
		}
		key, err := im.settings.Rules.ParsePerson(c[1])
		if err != nil {
			r.Skip(row.Line, "network_url: "+err.Error())
			return nil
		}
		r.Rows++
		seen, ok := micros(c[2])
		if !ok {
			r.Drop(row.Line, "seen_at: invalid_time")
		}
		confidence := DefaultConfidence
		if given, ok := imports.Share(c[3]); ok {
			confidence = given
		} else if c[3] != "" {
			r.Drop(row.Line, "confidence: invalid_share")
		}
		sum.Add(addr.String(), key, fmt.Sprint(seen), fmt.Sprint(confidence))
		return into[0].add(addr.String(), key, seen, confidence)
	})
}

// publicAddr reads an address that may be looked up, in the form it is looked
// up by; reason says why it is none.
func publicAddr(cell string) (a netip.Addr, reason string) {
	a, err := ipaddr.Parse(cell)
	if err != nil {
		return a, err.Error()
	}
	found, ok := ipaddr.LookupAddr(a)
	if !ok {
		return a, "ip_class:" + string(ipaddr.ClassOf(a))
	}
	return found, ""
}

// Visit is one person seen behind an address.
type Visit struct {
	NetworkURL string
	SeenAt     *time.Time // UTC, nil when unknown
	Confidence float64    // 0 to 1
}

// maxVisits bounds one answer.
const maxVisits = 16

// Visits lists who was seen behind an address that may be looked up
// (ipaddr.LookupAddr): the highest confidence first, of equals the most
// recent. At most 16.
func (d *Directory) Visits(ctx context.Context, addr netip.Addr) ([]Visit, error) {
	if err := ctx.Err(); err != nil || d.visits == nil {
		return nil, err
	}
	rows, err := d.visits.byIP.Query(addr.String())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var visits []Visit
	for rows.Next() {
		var v Visit
		var seen sql.NullInt64
		if err := rows.Scan(&v.NetworkURL, &seen, &v.Confidence); err != nil {
			return nil, err
		}
		if seen.Valid {
			at := time.UnixMicro(seen.Int64).UTC()
			v.SeenAt = &at
		}
		visits = append(visits, v)
	}
	return visits, rows.Err()
}

type visitReader struct {
	*sqliteFile
	byIP *sql.Stmt
}

func openVisits(path string) (*visitReader, error) {
	f, err := openSQLite(path)
	if err != nil {
		return nil, err
	}
	byIP, err := f.db.Prepare(`SELECT network_url, seen_at, confidence FROM visits WHERE ip = ?
		ORDER BY confidence DESC, seen_at DESC, network_url LIMIT ` + strconv.Itoa(maxVisits))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &visitReader{f, byIP}, nil
}
