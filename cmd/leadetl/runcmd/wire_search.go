package runcmd

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// searchFlags describe one search on the command line instead of a list; or,
// together with a list, the default values of its rows.
type searchFlags struct {
	texts  map[string]*string // by field
	truths map[string]*bool
	asOf   cliflag.Day
	given  []string // fields
	listed bool     // together with a list
}

// searchField is a field of a search and its flag: the usage text, and the
// error text for an invalid value.
type searchField struct {
	name, usage, form string
	use               cli.Use
}

var searchFields = []searchField{
	{"keywords", "one search in place of --in: `words` that were searched for, alternatives with ; between them", "1 to 100 of them with ; between them, each of at most 200 characters", 0},
	{"cities", "`cities` the search was made from, with ; between them", "at most 500 with ; between them, each of at most 100 characters", 0},
	{"states", "`states`, two letters each", "two letters each, such as CA;NY, and at most 500", 0},
	{"zips", "`codes`, ZIP or ZIP+4", "ZIP codes such as 12345 or 12345-6789, at most 500 with ; between them", 0},
	{"lead_type", "`kind` of lead: b2b or b2c; with --in, where a row does not say", "b2b or b2c", ofRows},
	{"date_start", "first `day`, UTC (default: a week before the last); with --in, where a row does not say", "a day that exists and has begun, as YYYY-MM-DD", ofRows},
	{"date_end", "last `day` (default: the day of --as-of); with --in, where a row does not say", "a day that exists and has begun, as YYYY-MM-DD", ofRows},
	{"limit", "`leads` of a page: a service makes, and a run buys, a page at a time (default 1000); with --in, where a row does not say", "1 to 1000", cli.Key | ofRows},
	{"limit_of_hems", "most `hashes` of a lead's emails (default 20); with --in, where a row does not say", "1 to 20", cli.Key | ofRows},
	{"page", "this `page` alone (default: all)", "1 or more, and no more than 100,000 divided by limit", cli.Key},
	{"deanonymize", "ask for names, emails, phones and profile addresses too; with --in, where a row does not say", "true or false", cli.Key | ofRows},
	{"super_enrichment", "ask for the company too, and for every email and phone; with --in, where a row does not say", "true or false", cli.Key | ofRows},
	{"job_title_inclusions", "parts of job `titles`, one of which a lead has", "at most 100 with ; between them, each of at most 200 characters", cli.Key},
	{"job_title_exclusions", "parts of job `titles`, none of which a lead has", "at most 100 with ; between them, each of at most 200 characters", cli.Key},
}

// dateRange is the name for both days in reasons.
const dateRange = "date_range"

func (f *searchFlags) settings() (all []cli.Setting) {
	f.texts, f.truths = map[string]*string{}, map[string]*bool{}
	for _, field := range searchFields {
		s := field.setting()
		switch field.name {
		case "deanonymize", "super_enrichment":
			f.truths[field.name] = new(bool)
			s.To = f.truths[field.name]
		default:
			f.texts[field.name] = new(string)
			s.To = f.texts[field.name]
		}
		all = append(all, s)
	}
	return mark(ofSearch, append(all, cli.Setting{Name: "as-of", To: &f.asOf, Text: "`day` that searches take for today: those without dates are about the 8 days that end on it (default: when the dataset is begun)"}))
}

// setting is that of the field, without the place of its value.
func (s searchField) setting() cli.Setting {
	return cli.Setting{Name: strings.ReplaceAll(s.name, "_", "-"), Use: s.use, Text: s.usage}
}

func fieldOf(name string) searchField {
	return searchFields[slices.IndexFunc(searchFields, func(s searchField) bool { return s.name == name })]
}

// check joins the problems of the search, before anything is opened. today is
// any time on the current day.
func (f *searchFlags) check(ofLists []cli.Setting, flags *pflag.FlagSet, op resolution.Operation, today time.Time) error {
	var errs []error
	asOf := flags.Changed("as-of")
	for _, field := range searchFields {
		if flags.Changed(field.setting().Name) {
			f.given = append(f.given, field.name)
		}
	}
	switch {
	case !op.IsKeyword():
		return nil
	case asOf && f.asOf.Midnight().After(today):
		errs = append(errs, errors.New("--as-of has not begun yet (UTC); give today or a day before"))
	case asOf:
		today = f.asOf.Midnight()
	}
	if len(f.given) == 0 {
		return errors.Join(errs...)
	}
	if f.listed = flags.Changed("in"); f.listed {
		errs = append(errs, f.checkListed())
	} else {
		errs = append(errs, f.checkAlone(ofLists))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, reason := search.DefaultLimits().Read(f.textOrAny, today, op.Gives() == resolution.GivesCount)
	return f.wrongSearch(reason)
}

// checkListed refuses flags for a single search if there is a list.
func (f *searchFlags) checkListed() error {
	var wrong, columns []string
	for _, field := range f.given {
		if s := fieldOf(field).setting(); s.Use&ofRows == 0 {
			wrong, columns = append(wrong, s.String()), append(columns, field)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("--in is for a list of searches, and %s for one; leave out --in, or have it in the list: columns %s", strings.Join(wrong, ", "), strings.Join(columns, ", "))
}

// checkAlone refuses flags for a list if there is a single search, and a search
// without words.
func (f *searchFlags) checkAlone(ofLists []cli.Setting) error {
	var errs []error
	for _, other := range ofLists {
		errs = append(errs, fmt.Errorf("%s is for a list of searches, and %s gives one; leave out one of them", other, fieldOf(f.given[0]).setting()))
	}
	if !slices.Contains(f.given, "keywords") {
		errs = append(errs, errors.New("no --keywords; name at least one word that was searched for, or a list with --in"))
	}
	return errors.Join(errs...)
}

// wrongSearch returns an error with the flag behind a reason, and the correct
// form. It repeats a wrong day: other values may be of a person.
func (f *searchFlags) wrongSearch(reason string) error {
	field, _, wrong := strings.Cut(reason, ":")
	switch {
	case !wrong:
		return nil
	case field == dateRange:
		return errors.New("--date-start must not be after --date-end, and at most 30 days before it")
	}
	written := ""
	if field == "date_start" || field == "date_end" {
		written = fmt.Sprintf(" %q", f.text(field))
	}
	return fmt.Errorf("%s%s: write %s", fieldOf(field).setting(), written, fieldOf(field).form)
}

// text returns a field as the text of a cell.
func (f *searchFlags) text(field string) string {
	if truth, ok := f.truths[field]; ok {
		return strconv.FormatBool(*truth)
	}
	return *f.texts[field]
}

// textOrAny is text, but with a list it returns a placeholder for the words,
// which are in the rows.
func (f *searchFlags) textOrAny(field string) string {
	if f.listed && field == "keywords" {
		return "any"
	}
	return f.text(field)
}

// defaults returns the default values of a list's rows, by field, for the
// fields that an operation reads. It is nil if there are none.
func (f *searchFlags) defaults(op resolution.Operation) map[string]string {
	if !f.listed {
		return nil
	}
	var all map[string]string
	for _, field := range f.given {
		truth, isTruth := f.truths[field]
		unread := op.Gives() == resolution.GivesCount && (isTruth || field == "limit")
		if unread || isTruth && !*truth { // the same as without the flag
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[field] = f.text(field)
	}
	return all
}

// apply sets the searches of a job.
func (f *searchFlags) apply(job *job.Job) {
	job.AsOf = f.asOf.Midnight()
	job.SearchDefaults = f.defaults(job.Operation)
}

// isGiven reports whether the flags describe a search to run.
func (f *searchFlags) isGiven() bool { return len(f.given) > 0 && !f.listed }

// list makes the search a list of one row, which is read like standard input.
func (f *searchFlags) list(o *sources.Options) (uris []string, err error) {
	cells := make([]string, len(f.given))
	for i, field := range f.given {
		cells[i] = f.text(field)
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	if err := w.WriteAll([][]string{f.given, cells}); err != nil {
		return nil, err
	}
	o.Stdin, o.StdinName, o.Delimiter = strings.NewReader(text.String()), "flags", ','
	return []string{"-"}, nil
}
