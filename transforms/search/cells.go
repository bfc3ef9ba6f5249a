package search

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/jsonlist"
	"github.com/leadetl/leadetl/internal/nullword"
	"github.com/leadetl/leadetl/internal/spreadsheet"
)

// Fields are the names of the fields of a search, as in requests of the interface.
var Fields = []string{
	"keywords", "cities", "states", "zips", "lead_type", "date_start", "date_end", "limit", "limit_of_hems", "page",
	"deanonymize", "super_enrichment", "job_title_inclusions", "job_title_exclusions",
}

// separator separates the values of a list in a cell.
const separator = ";"

// Cells are the fields of a search as text: Cells(name) returns the cell of one of
// Fields, or "". Lists have ; between their values, or are JSON; empty values do not count.
type Cells func(name string) string

// Read makes a query of cells. today is any time of the present day. For an invalid
// search, the reason names the field and the fault: "keywords:missing",
// "states:invalid", "date_range:too_long".
//
// A count uses only the fields that choose leads and bound their hashed emails.
func (l Limits) Read(cell Cells, today time.Time, count bool) (q Query, reason string) {
	r := reader{cell: cell, limits: l}
	q.Keywords = r.list("keywords", l.Keywords, Words(l.TermLength))
	if len(q.Keywords) == 0 {
		r.wrong("keywords", "missing")
	}
	q.Cities = r.list("cities", l.Places, Words(l.CityLength))
	q.States = r.list("states", l.Places, State)
	q.Zips = r.list("zips", l.Places, Zip)
	q.LeadType = r.leadType()
	q.Start, q.End = r.days(today)
	q.JobTitleInclusions = r.list("job_title_inclusions", l.JobTitles, Words(l.TermLength))
	q.JobTitleExclusions = r.list("job_title_exclusions", l.JobTitles, Words(l.TermLength))
	q.HEMs = r.integer("limit_of_hems", l.HEMs, l.HEMs)
	if !count {
		q.Limit = r.integer("limit", l.PageLimit, l.PageLimit)
		q.Page = r.integer("page", l.Depth, 0)
		if q.Limit > 0 && q.Page > l.Depth/q.Limit {
			r.wrong("page", "out_of_range")
		}
		q.Deanonymize = r.boolean("deanonymize")
		q.SuperEnrichment = r.boolean("super_enrichment")
	}
	if r.reason != "" {
		return Query{}, r.reason
	}
	return q, ""
}

// IsEmpty reports whether a cell is empty, a null word or an empty list.
func IsEmpty(cell string) bool {
	text := trimmed(jsonlist.Only(cell))
	return text == "" || nullword.Is(text)
}

// trimmed returns a cell without the mark of a spreadsheet and without white space around it.
func trimmed(cell string) string { return Trimmed(spreadsheet.Text(Trimmed(cell))) }

// reader reads cells and keeps the first fault.
type reader struct {
	cell   Cells
	limits Limits
	reason string
}

func (r *reader) wrong(field, what string) {
	if r.reason == "" {
		r.reason = field + ":" + what
	}
}

// words are the faults as reasons name them.
var words = map[string]string{
	"invalid_state": "invalid", "invalid_zip": "invalid", "invalid_date": "invalid", "unknown_value": "invalid",
	"date_in_future": "in_future", "date_order": "order", "date_span": "too_long",
}

// fault keeps a fault. It returns true for none.
func (r *reader) fault(field string, wrong Fault) (fine bool) {
	if wrong == (Fault{}) {
		return true
	}
	word, ok := words[wrong.Code]
	if !ok {
		word = wrong.Code
	}
	r.wrong(field, word)
	return false
}

// text returns a trimmed cell; "" for a null word. A list with one value is that value.
func (r *reader) text(field string) string {
	text := trimmed(jsonlist.Only(r.cell(field)))
	if IsEmpty(text) {
		return ""
	}
	if !utf8.ValidString(text) {
		r.wrong(field, "invalid_utf8")
		return ""
	}
	return text
}

// list reads the folded values of a list, sorted and without duplicates, because their
// order means nothing.
func (r *reader) list(field string, most int, read Term) (values []string) {
	text := r.text(field)
	items, isList := jsonlist.Texts(text)
	if !isList {
		items = strings.Split(text, separator)
	}
	for _, item := range items {
		if item = trimmed(item); item == "" {
			continue
		}
		_, folded, wrong := read(item)
		if !r.fault(field, wrong) {
			return nil
		}
		values = append(values, folded)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) > most {
		r.wrong(field, "too_many")
	}
	return values
}

func (r *reader) leadType() string {
	text := r.text("lead_type")
	if text == "" {
		return ""
	}
	leadType, wrong := LeadType(text)
	r.fault("lead_type", wrong)
	return leadType
}

func (r *reader) days(today time.Time) (first, last time.Time) {
	start, startFine := r.day("date_start", today)
	end, endFine := r.day("date_end", today)
	if !startFine || !endFine {
		return start, end
	}
	first, last, wrong := r.limits.Period(start, end, today)
	r.fault("date_range", wrong)
	return first, last
}

func (r *reader) day(field string, today time.Time) (day time.Time, fine bool) {
	text := r.text(field)
	if text == "" {
		return time.Time{}, true
	}
	day, wrong := Day(text, today)
	return day, r.fault(field, wrong)
}

// integer reads a whole number from 1 to most. An empty cell is otherwise. Some
// programs write 100.0.
func (r *reader) integer(field string, most, otherwise int) int {
	text := r.text(field)
	if text == "" {
		return otherwise
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole, "0123456789") == "" && strings.Trim(fraction, "0") == ""
	n, err := strconv.Atoi(whole)
	switch {
	case !digits || whole == "":
		r.wrong(field, "invalid")
	case err != nil || n < 1 || n > most: // the number is too long
		r.wrong(field, "out_of_range")
	default:
		return n
	}
	return otherwise
}

func (r *reader) boolean(field string) bool {
	switch strings.ToLower(r.text(field)) {
	case "", "false", "no", "0":
		return false
	case "true", "yes", "1":
		return true
	}
	r.wrong(field, "invalid")
	return false
}
