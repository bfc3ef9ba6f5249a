package program

import (
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/audience"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/lines"
	"github.com/leadetl/leadetl/sinks/typed"
	"github.com/leadetl/leadetl/transforms/hashed"
	"github.com/leadetl/leadetl/transforms/platform"
)

// audienceFlags are the flags of an export for a platform.
type audienceFlags struct {
	platform, since            string
	from, keys, madeBy         []string
	country                    string
	withFound, allowUnverified bool
}

func (f *audienceFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.platform, "for", "", "write the upload file of a `platform`: "+strings.Join(platform.Names(), ", "))
	flags.StringVar(&f.since, "since", "", "earlier `dataset`: write to the folders add and remove in --out who is new since, and who is gone")
	flags.StringSliceVar(&f.from, "from", nil, "`FIELD=COLUMN` of the list with email, phone, first_name, last_name, country, zip_code, city, state, job_title or company_name, for --for; the identifier needs none")
	flags.StringVar(&f.country, "country", "", "`country` of rows without one, such as US: names, postal codes and national phones need it")
	flags.StringSliceVar(&f.keys, "keys", nil, "`keys` to write, email or phone (default: all that the platform takes)")
	flags.StringSliceVar(&f.madeBy, "digests-by", nil, "`rules` that the digests in the list were made by: plain, google, uid2 of emails, e164, digits of phones")
	flags.BoolVar(&f.withFound, "with-found", false, "also write what resolvers and reference data found")
	flags.BoolVar(&f.allowUnverified, "allow-unverified", false, "also write digests that may not be by the platform's rule")
}

// settings are those of an audience; the platform is nil without --for.
func (f *audienceFlags) settings() (s audience.Settings, err error) {
	if f.platform == "" {
		if f.since != "" || len(f.from) > 0 || f.country != "" || len(f.keys) > 0 || len(f.madeBy) > 0 || f.withFound || f.allowUnverified {
			return s, errors.New("--since, --from, --country, --keys, --digests-by, --with-found and --allow-unverified need --for PLATFORM")
		}
		return s, nil
	}
	s = audience.Settings{Platform: platform.ByName(f.platform), Country: platform.CountryOf(f.country), Found: f.withFound, Unverified: f.allowUnverified}
	switch {
	case s.Platform == nil:
		return s, fmt.Errorf("there is no platform %q%s", f.platform, suggest.OneOf(f.platform, platform.Names()))
	case f.since != "" && s.Platform.Before != nil:
		return s, fmt.Errorf("--since cannot be used with --for %s: its file makes a list of its own; export the whole one", f.platform)
	case f.country != "" && s.Country == "":
		return s, fmt.Errorf("--country %s is no country; give two letters, such as US or GB", f.country)
	}
	for _, name := range f.keys {
		field := platform.Field(name)
		if !field.IsKey() || !slices.Contains(s.Platform.Takes(), field) {
			return s, fmt.Errorf("--keys %s: %s is found by no such key", name, s.Platform.Name)
		}
		s.Keys = append(s.Keys, field)
	}
	for _, name := range f.madeBy {
		if p, err := hashed.Parse(hashed.Phone, name); err == nil {
			s.Numbers = append(s.Numbers, p.Phone)
		} else if p, err := hashed.Parse(hashed.Email, name); err == nil {
			s.Mails = append(s.Mails, p.Email)
		} else {
			return s, fmt.Errorf("--digests-by %s is no rule%s", name, suggest.OneOf(name, slices.Concat(hashed.Names(hashed.Email), hashed.Names(hashed.Phone))))
		}
	}
	s.From, err = audience.ParseFrom(f.from)
	return s, err
}

// checkAudience refuses what a file for a platform cannot have.
func (f *exportFlags) checkAudience() error {
	switch {
	case f.platform == "":
		return nil
	case len(f.selected) > 0:
		return fmt.Errorf("--select cannot be used with --for: the columns are those of %s", f.platform)
	case f.format != "csv":
		return fmt.Errorf("--for %s writes csv, not %s", f.platform, f.format)
	case f.since != "" && (f.out == "-" || strings.HasSuffix(f.out, "."+f.format)):
		return fmt.Errorf("--since needs a folder; --out %s is one file", f.out)
	case f.since != "" && len(f.where) > 0:
		return errors.New("--since cannot be used with --where: who does not match would be removed")
	}
	return nil
}

// list is an audience that is being written. Its methods but encode are for one goroutine.
type list struct {
	*audience.Maker
	of     *platform.Platform
	scan   *sinks.Scan
	before []byte // in each file before the people
	limit  int64  // rows of a file
	seen   audience.Seen
	other  audience.Seen // people who are not written
	same   int64         // of them
	counts audience.Counts
	people, repeated,
	rows, bytes int64 // of the file
	files int
}

// newList is what an export for a platform reads and writes.
func newList(m *sinks.Manifest, s audience.Settings, where [][2]string, dataset string, rowsPerFile int64) (*sinks.Scan, content, error) {
	if m.Operation == "" {
		return nil, nil, errors.New("--for needs a dataset, not a table beside one")
	}
	maker, err := audience.New(m, s)
	if err != nil {
		return nil, nil, err
	}
	scan, err := m.NewScan(maker.Columns(), where)
	if err != nil {
		return nil, nil, err
	}
	of := s.Platform
	l := &list{Maker: maker, of: of, scan: scan, limit: rowsPerFile, seen: audience.Seen{}, files: 1}
	if of.MaxRows > 0 && (l.limit == 0 || l.limit > of.MaxRows) {
		l.limit = of.MaxRows
	}
	var records [][]string
	if !of.NoHeader {
		records = append(records, maker.Header())
	}
	if of.Before != nil {
		records = append(records, of.Before(nameOf(dataset))...)
	}
	for _, record := range records {
		l.before = append(l.before, csvLine(record)...)
	}
	l.bytes = int64(len(l.before))
	return scan, l, nil
}

// nameOf is the name of a dataset's folder, as the name of a list.
func nameOf(dataset string) string {
	name := []rune(path.Base(strings.TrimSuffix(filepath.ToSlash(filepath.Clean(dataset)), "/")))
	return string(name[:min(len(name), 128)])
}

func csvLine(record []string) (line []byte) {
	for i, cell := range record {
		if i > 0 {
			line = append(line, ',')
		}
		if cell != "" {
			line = lines.AppendCell(line, []byte(cell))
		}
	}
	return append(line, '\n')
}

// header is what each file begins with.
func (l *list) header() []byte { return l.before }

// encode makes people of rows, in any goroutine. What it returns writes those that are new.
func (l *list) encode(rows []arrow.Array, n int) func(*exporting) {
	people, counts := l.People(rows, n)
	typed.Release(rows)
	return func(e *exporting) {
		l.counts.Add(counts)
		var text []byte
		for _, p := range people {
			if !l.seen.Add(p) {
				l.repeated++
				continue
			}
			if l.other.Has(p) {
				l.same++
				continue
			}
			if l.limit > 0 && l.rows == l.limit || l.of.MaxBytes > 0 && l.bytes+int64(len(p.Line)) > l.of.MaxBytes {
				e.write(text)
				text = text[:0]
				if l.rows, l.bytes = 0, int64(len(l.before)); !e.several() {
					e.fail(cli.UsageError(fmt.Errorf("%s takes at most %s a file; name a folder with --out, for several files", l.of.Name, l.most())))
					return
				}
				e.begin()
				l.files++
			}
			text = append(text, p.Line...)
			l.rows, l.bytes, l.people = l.rows+1, l.bytes+int64(len(p.Line)), l.people+1
			if p.Doubtful {
				l.counts.Doubtful++
			}
			if p.Found {
				l.counts.Found++
			}
		}
		e.write(text)
	}
}

// most are the limits of a file in words.
func (l *list) most() string {
	var all []string
	if l.of.MaxRows > 0 {
		all = append(all, figures.Plural(l.of.MaxRows, "row"))
	}
	if l.of.MaxBytes > 0 {
		all = append(all, figures.Plural(l.of.MaxBytes, "byte"))
	}
	return strings.Join(all, " and ")
}

// summary is the closing table: what is doubtful first.
func (l *list) summary(to io.Writer, out string) error {
	t := runview.Table{Title: fmt.Sprintf("%s for %s", out, l.of.Title)}
	c := l.counts
	t.CountIfAny("unverified", c.Unverified, "digests left out: whether they are by the rule of "+l.of.Name+" is not known; --digests-by names their rule, --allow-unverified writes them")
	t.CountIfAny("unverified", c.Doubtful, "written by a digest that may not be by the rule of "+l.of.Name)
	t.Count("rows", c.Rows+l.scan.LeftOut, "of the dataset")
	t.Count("people", l.people, "written, each once")
	t.CountIfAny("suppressed", l.scan.LeftOut, "rows that name somebody on the suppression lists; not written")
	t.CountIfAny("same", l.same, "people in both datasets; not written")
	t.CountIfAny("repeated", l.repeated, "rows of people who were there before")
	t.CountIfAny("no key", c.NoKey, "rows without a key that "+l.of.Name+" takes; not written")
	t.CountIfAny("incomplete", c.Incomplete, "rows without another field that "+l.of.Name+" needs; not written")
	t.CountIfAny("open", c.Open, "rows with a name or place that the pages of "+l.of.Name+" disagree about; written without it")
	if l.UsesFound {
		t.Count("found", c.Found, "people with something that resolvers or reference data found")
		t.Text("whose data", whose(l.of))
	}
	for _, reservation := range l.of.Reservations {
		t.Text("reservation", reservation)
	}
	if l.files > 1 {
		t.Text("WARN", fmt.Sprintf("split into %d files, by the limits of %s or --rows-per-file; where each upload makes an audience, one file is not the whole", l.files, l.of.Name))
	}
	if l.other == nil && l.rows < l.of.Least { // a list of its own; the last file has the fewest
		t.Text("WARN", fmt.Sprintf("%s asks for at least %s %s a list", l.of.Name, figures.Grouped(l.of.Least), l.of.LeastOf))
	}
	return t.Print(to)
}

// whose is the rule of a platform about whose data it takes, with its page and date.
func whose(p *platform.Platform) string {
	if p.Whose.Text == "" {
		return p.Title + ": no rule was read at its source; ask whether data that people did not give you may be uploaded"
	}
	return fmt.Sprintf("%s: %s (%s, %s)", p.Title, p.Whose.Text, p.Whose.Source, p.Whose.When())
}
