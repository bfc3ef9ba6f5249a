package searches

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/resolution/directory/imports"
)

// Columns are the columns of a file of searches.
var Columns = imports.Columns{
	Names: []string{"keyword", "searched_at", "network_url", "email", "city", "state", "zip_code", "job_title",
		"lead_type"},
	Required: []string{"keyword", "searched_at"},
	Either:   [][]string{{"network_url", "email"}},
}

// Import reads r.Source and writes a file.
func Import(ctx context.Context, options imports.Options, r *imports.Report, to imports.File) (_ imports.Result, err error) {
	b := newBuilder(to)
	defer func() { err = errors.Join(err, b.close()) }()
	sum := imports.NewContent()
	if err := imports.Read(ctx, options, r, Columns, parser(options), func(s cells) error {
		sum.Add(s.keyword, fmt.Sprint(s.at), s.person, s.email, s.city, s.state, s.zip, s.jobTitle, s.leadType)
		return b.addSearch(s)
	}); err != nil {
		return imports.Result{}, err
	}
	keywords := b.keywords.Len()
	if err := b.write(ctx); err != nil {
		return imports.Result{}, err
	}
	return imports.Result{Keys: int64(keywords), Content: sum.Sum()}, nil
}

// cells is a search with cells in canonical form.
type cells struct {
	keyword            string
	at                 int64  // Unix microseconds
	person, email      string // keys of the person, at least one
	city, state, zip   string
	jobTitle, leadType string
}

// parser returns a function that reads a line. A line without a keyword, a time or a person is
// bad.
func parser(o imports.Options) func(imports.Row, *imports.Report) (cells, bool) {
	rules := o.Rules()
	return func(row imports.Row, r *imports.Report) (s cells, ok bool) {
		c := row.Cells
		s.city, s.zip, s.jobTitle = c[4], c[6], c[7]
		// Keywords are compared without regard to case and spacing.
		if s.keyword = strings.ToLower(strings.Join(strings.Fields(c[0]), " ")); s.keyword == "" {
			r.Skip(row.Line, "keyword: empty")
			return s, false
		}
		at, ok := imports.Time(c[1])
		if !ok {
			r.Skip(row.Line, "searched_at: "+imports.EmptyOr(c[1], "invalid_time"))
			return s, false
		}
		s.at = at.UnixMicro()
		var err error
		if c[2] != "" {
			if s.person, err = rules.ParsePerson(c[2]); err != nil {
				r.Drop(row.Line, "network_url: "+err.Error())
			}
		}
		if c[3] != "" {
			if s.email, err = imports.EmailKey(c[3]); err != nil {
				r.Drop(row.Line, "email: "+err.Error())
			}
		}
		if s.person == "" && s.email == "" {
			r.Skip(row.Line, "network_url, email: nobody_searched")
			return s, false
		}
		if s.state = strings.ToUpper(c[5]); len(s.state) != 2 && s.state != "" {
			r.Drop(row.Line, "state: invalid_state")
			s.state = ""
		}
		switch s.leadType = strings.ToLower(c[8]); s.leadType {
		case "", "b2b", "b2c":
		default:
			r.Drop(row.Line, "lead_type: invalid_lead_type")
			s.leadType = ""
		}
		return s, true
	}
}
