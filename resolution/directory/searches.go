package directory

import (
	"context"
	"fmt"
	"strings"
)

var searchColumns = columns{
	names: []string{"keyword", "searched_at", "network_url", "email", "city", "state", "zip_code", "job_title",
		"lead_type"},
	required: []string{"keyword", "searched_at"},
	either:   [][]string{{"network_url", "email"}},
}

// Who searched is a profile key, an email key, or both.
const searchSchema = `
CREATE TABLE searches(keyword TEXT NOT NULL, searched_at INTEGER NOT NULL, network_url TEXT, email TEXT, city TEXT, state TEXT,
	zip_code TEXT, job_title TEXT, lead_type TEXT);`

const searchIndex = `
CREATE INDEX searches_keyword ON searches(keyword, searched_at);
CREATE INDEX searches_searched_at ON searches(searched_at);`

func (im *importer) searches(ctx context.Context, r *KindReport) (entry, error) {
	l := loading{
		want:   searchColumns,
		schema: searchSchema,
		tables: []tableColumns{{"searches", searchColumns.names}},
		index:  searchIndex,
		keys:   "SELECT count(DISTINCT keyword) FROM searches",
	}
	return im.load(ctx, r, l, func(row row, into []*inserter, sum *content) error {
		s, ok := im.search(row, r)
		if !ok {
			return nil
		}
		r.Rows++
		c := row.cells
		sum.add(s.keyword, fmt.Sprint(s.at), s.person, s.email, c[4], s.state, c[6], c[7], s.leadType)
		return into[0].add(s.keyword, s.at, s.person, s.email, c[4], s.state, c[6], c[7], s.leadType)
	})
}

// searchCells is what has to be understood of a line of searches.
type searchCells struct {
	keyword, person, email, state, leadType string
	at                                      any // int64 microseconds
}

// search reads a line: bad without a keyword, a moment or somebody who
// searched.
func (im *importer) search(row row, r *KindReport) (s searchCells, ok bool) {
	if !r.take(row) {
		return s, false
	}
	c := row.cells
	// Keywords are compared without case, and spaces do not tell them apart.
	if s.keyword = strings.ToLower(strings.Join(strings.Fields(c[0]), " ")); s.keyword == "" {
		r.bad(row.line, "keyword: empty")
		return s, false
	}
	if s.at, ok = micros(c[1]); !ok || s.at == nil {
		r.bad(row.line, "searched_at: "+emptyOr(c[1], "invalid_time"))
		return s, false
	}
	var err error
	if c[2] != "" {
		if s.person, err = im.rules.ParsePerson(c[2]); err != nil {
			r.dropped(row.line, "network_url: "+err.Error())
		}
	}
	if c[3] != "" {
		if s.email, err = emailKey(c[3]); err != nil {
			r.dropped(row.line, "email: "+err.Error())
		}
	}
	if s.person == "" && s.email == "" {
		r.bad(row.line, "network_url, email: nobody_searched")
		return s, false
	}
	if s.state = strings.ToUpper(c[5]); len(s.state) != 2 && s.state != "" {
		r.dropped(row.line, "state: invalid_state")
		s.state = ""
	}
	switch s.leadType = strings.ToLower(c[8]); s.leadType {
	case "", "b2b", "b2c":
	default:
		r.dropped(row.line, "lead_type: invalid_lead_type")
		s.leadType = ""
	}
	return s, true
}
