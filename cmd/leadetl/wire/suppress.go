package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Suppress are the flags that name suppression lists.
type Suppress struct {
	Lists   []string
	Columns []string
	maxBad  cliflag.Limit
	// Reading says how to open lists. Its zero value refuses lists on S3.
	Reading sources.Options
}

// Settings are those of a command, which f receives.
func (f *Suppress) Settings(whom string) []cli.Setting {
	f.maxBad = cliflag.NewLimit(0)
	return []cli.Setting{
		{Name: "suppress", To: &f.Lists, Use: cli.Everyday | cli.Whole, Text: "`file`, folder, ZIP archive or glob of people " + whom + ": emails, @domains, phones, profile URLs, IPs, or hashes of these, one a line or in columns of CSV, JSON Lines or Parquet; repeatable"},
		{Name: "suppress-column", To: &f.Columns, Use: cli.Key, Needs: "suppress", Text: "`columns` of the lists (default: the only one, or those named email, phone, hash, …)"},
		{Name: "suppress-max-bad", To: &f.maxBad, Use: cli.Key, Needs: "suppress", Text: "stop when more than this `limit` of entries cannot be read: a count, or a share such as 1% (default: 0)"},
	}
}

// listNames are the columns that hold entries by default, in lower case. Those of person.Names name people together.
var listNames = append(keys.IdentifierColumns(), "hash", "md5", "sha1", "sha256")

// SuppressionLists is the content of lists.
type SuppressionLists struct {
	Set     *suppression.Set
	Entries int64
	PassedOver
	Empty []string // the lists without entries, as named in --suppress
	// Withdrawn are DROP's lists of withdrawn requests among others; they are left out.
	Withdrawn []string
	// Drop are DROP's other lists, each alone, to be read again.
	Drop []DropList
}

// PassedOver are the rows or entries without an identifier.
type PassedOver struct {
	Bad    int64
	Places []string // of the first of these
}

// Add counts one.
func (p *PassedOver) Add(place string) {
	if p.Bad++; len(p.Places) < ShownPlaces {
		p.Places = append(p.Places, strings.Clone(place))
	}
}

// Print lists them.
func (p *PassedOver) Print(to io.Writer) {
	for _, place := range p.Places {
		fmt.Fprintf(to, "no identifier: %s\n", invisible.Escape(place))
	}
	if more := p.Bad - int64(len(p.Places)); more > 0 {
		fmt.Fprintf(to, "no identifier: and %s more\n", figures.Grouped(more))
	}
}

// DropList is a list of California's Delete Request and Opt-out Platform (DROP).
type DropList struct {
	*sources.List
	IsEmpty bool // it has a header alone
}

// listReader reads lists.
type listReader struct {
	flags *Suppress
	add   func(Cell) error
	lists SuppressionLists
	files map[string]*listFile // by URI
}

// listFile is what is known of a file of a list.
type listFile struct {
	headless     bool // its first line is an entry and not a header
	entries, bad int64
}

// Open reads the lists; nil without lists.
func (f *Suppress) Open(ctx context.Context, region string, hosts []string, log *slog.Logger) (*suppression.Set, error) {
	l, err := f.OpenAll(ctx, region, hosts, log)
	return l.Set, err
}

// OpenAll reads the lists, and tells of what is in none. It fails if too many entries are
// invalid, because these people would not be suppressed.
func (f *Suppress) OpenAll(ctx context.Context, region string, hosts []string, log *slog.Logger) (l SuppressionLists, err error) {
	if len(f.Lists) == 0 {
		return l, nil
	}
	if l, err = f.Read(ctx, region, hosts); err != nil {
		return l, err
	}
	if l.Bad > 0 {
		for _, place := range l.Places {
			log.Warn("suppression list entry cannot be read", "at", place)
		}
		if f.maxBad.Exceeded(l.Bad, l.Entries) {
			return l, cli.UsageError(fmt.Errorf("%s of %s suppression list entries cannot be read, more than suppress_max_bad %s; the people they stand for would not be suppressed; correct them, or allow some; an entry for all addresses of a domain is @acme.example", figures.Grouped(l.Bad), figures.Grouped(l.Entries), f.maxBad.String()))
		}
		log.Warn("some suppression list entries cannot be read; the people they stand for are not suppressed", "entries", l.Bad)
	}
	l.Tell(log)
	log.Debug("suppression lists read", "entries", l.Entries, "digests", l.Set.Len())
	return l, nil
}

// Tell logs the lists that are left out, and those without entries.
func (l *SuppressionLists) Tell(log *slog.Logger) {
	for _, uri := range l.Withdrawn {
		log.Warn("DROP's list of withdrawn requests is left out; its people stay suppressed until their IDs are removed from the other lists", "list", uri)
	}
	for _, uri := range l.Empty {
		log.Warn("suppression list has no entries", "list", uri)
	}
}

// Cell is a cell of a list.
type Cell struct {
	Text string
	File string
	Line int64 // as that of sources.Batch
}

// BindRegion adds the flag --default-region, whose values are checked when they are given.
func BindRegion(flags *pflag.FlagSet, to *string, usage string) {
	*to = job.Default("").DefaultRegion
	flags.Var((*region)(to), "default-region", usage)
}

type region string

func (r *region) String() string { return string(*r) }

func (r *region) Type() string { return "region" }

func (r *region) Set(text string) error {
	*r = region(text)
	return phone.CheckRegion(text)
}

// NewBuilder returns a builder of what lists have, by the rules of a run.
func NewBuilder(region string, hosts []string) *suppression.Builder {
	return suppression.NewBuilder(suppression.Rules{Region: region, Profiles: profile.Rules{Hosts: hosts}})
}

// Read reads the lists, and counts the invalid entries.
func (f *Suppress) Read(ctx context.Context, region string, hosts []string) (SuppressionLists, error) {
	builder := NewBuilder(region, hosts)
	lists, err := f.Each(ctx, func(c Cell) error { return builder.Add(c.Text) })
	lists.Set = builder.Set()
	return lists, err
}

// Each gives add all cells with entries, whose errors are those of Builder.Add, and counts the invalid ones.
func (f *Suppress) Each(ctx context.Context, add func(Cell) error) (SuppressionLists, error) {
	l := &listReader{flags: f, add: add, files: map[string]*listFile{}}
	for _, uri := range f.Lists {
		before := l.lists.Entries
		if err := l.readAll(ctx, uri); err != nil {
			if ctx.Err() != nil {
				return SuppressionLists{}, ErrInterruptedEarly
			}
			return SuppressionLists{}, UnlessUnavailable(fmt.Errorf("suppression list: %w", err))
		}
		if l.lists.Entries == before {
			l.lists.Empty = append(l.lists.Empty, uri)
		}
	}
	return l.lists, nil
}

// openLists opens the lists that a URI of --suppress names, also those in archives.
func (f *Suppress) openLists(ctx context.Context, uri string) (*sources.List, error) {
	reading := f.Reading
	reading.AllowEmpty, reading.Archives = true, true // an empty list has no entries
	reading.Wanted = slices.Concat(listNames, person.Names)
	if len(f.Columns) > 0 {
		reading.Wanted = f.Columns
	}
	return OpenInput(ctx, []string{uri}, reading)
}

// readAll reads the lists of a URI. Each may have its own columns.
func (l *listReader) readAll(ctx context.Context, uri string) error {
	if uri == "-" {
		return errors.New("standard input is not supported; save it to a file and name the file")
	}
	list, err := l.flags.openLists(ctx, uri)
	if err != nil {
		return err
	}
	if leftOut := list.LeftOut(); len(leftOut) > 0 { // people on it would not be suppressed
		list.Close()
		return fmt.Errorf("%s is a dataset of leadetl among the lists of %s, so it is not clear whether its people are to be suppressed; move it away, or name each list", leftOut[0], uri)
	}
	l.lists.Empty = append(l.lists.Empty, list.Empty()...)
	alike := list.ByColumns()
	for _, list := range alike {
		defer list.Close()
	}
	for _, list := range alike {
		if first := list.Files()[0]; first.URI != uri && isWithdrawn(first) {
			for _, file := range list.Files() {
				l.lists.Withdrawn = append(l.lists.Withdrawn, file.URI)
			}
			continue
		}
		if err := l.read(ctx, list); err != nil {
			return err
		}
		if err := l.judge(list); err != nil {
			return err
		}
	}
	return nil
}

// judge refuses a text without a header of which no line is an entry: a note among lists. It keeps the lists of DROP.
func (l *listReader) judge(list *sources.List) error {
	for _, list := range list.ByFile() {
		file, of := list.Files()[0], l.file(list.Files()[0].URI)
		if of.headless && of.bad > 0 && of.bad == of.entries {
			return fmt.Errorf("%s is no suppression list: none of its lines is an entry, and the first is no known column name; correct it, or move it away", file.URI)
		}
		if isDrop(file) && !list.ReadOnce() {
			l.lists.Drop = append(l.lists.Drop, DropList{list, of.entries == 0})
			continue
		}
		list.Close()
	}
	return nil
}

// file is what is known of a file.
func (l *listReader) file(uri string) *listFile {
	of := l.files[uri]
	if of == nil {
		of = &listFile{}
		l.files[uri] = of
	}
	return of
}

// read reads lists with the same columns.
func (l *listReader) read(ctx context.Context, list *sources.List) (err error) {
	if len(list.Files()[0].Columns) == 0 {
		return nil
	}
	columns, err := l.choose(list.Files()[0])
	if err != nil {
		return err
	}
	persons := personColumns(columns)
	reader, err := list.Reader(columns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for _, file := range list.Files() {
		if file.Format == "csv" && len(file.Columns) == 1 && len(l.flags.Columns) == 0 {
			l.header(file)
		}
	}
	for {
		batch, err := reader.Next(ctx, 0)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		of := l.file(batch.Source)
		entered := make([]bool, len(batch.Rows))
		for c, column := range batch.Columns {
			for i := range column.Len() {
				if persons[c] == "" && !column.IsNull(i) {
					entered[i] = l.cell(of, Cell{column.Value(i), batch.Source, batch.Line(i)}, batch.Rows[i]) || entered[i]
				}
			}
		}
		if slices.Max(persons) != "" {
			l.persons(of, batch, persons, entered)
		}
		for _, r := range batch.Rejects {
			l.unreadable(of, fmt.Sprintf("%s:%d: %s", r.Source, r.Line, r.Reason))
		}
		batch.Release()
	}
}

// persons adds who is named by name and company, of which columns have the values. A row that has only some of these,
// and no other entry, cannot be read.
func (l *listReader) persons(of *listFile, batch *sources.Batch, columns []string, others []bool) {
	for i, row := range batch.Rows {
		values := map[string]string{}
		for c, name := range columns {
			if name != "" {
				values[name] = person.Canonical(name, batch.Columns[c].Value(i))
			}
		}
		if key := person.Key(values); person.Forms(values) != nil || key != person.Key(nil) && !others[i] {
			l.cell(of, Cell{key, batch.Source, batch.Line(i)}, row)
		}
	}
}

// personColumns are the values of a person that columns have which name people together; "" for the others.
func personColumns(columns []string) []string {
	all, has := make([]string, len(columns)), map[string]string{}
	for i, c := range columns {
		if name := strings.ToLower(c); person.Is(name) && has[name] == "" {
			all[i], has[name] = name, name
		}
	}
	if person.Forms(has) == nil {
		clear(all)
	}
	return all
}

// header inspects the first line of a file with one column. A list needs no
// header, so the line is an entry unless it is a known column name. If a
// misspelled entry were taken for a header, that person would not be
// suppressed.
func (l *listReader) header(file sources.File) {
	name := file.Columns[0]
	if slices.Contains(listNames, strings.ToLower(name)) {
		return
	}
	of := l.file(file.URI)
	of.headless = true
	switch l.add(Cell{name, file.URI, 1}) {
	case nil:
		l.readable(of)
	case suppression.ErrEmpty:
	default:
		l.unreadable(of, file.URI+": its first line is neither an entry nor a known column name (name the column with suppress_column)")
	}
}

// cell adds a cell, and reports whether it is an entry.
func (l *listReader) cell(of *listFile, cell Cell, row int64) bool {
	switch err := l.add(cell); err {
	case nil:
		l.readable(of)
	case suppression.ErrEmpty:
		return false
	default:
		if of.headless {
			row++
		}
		l.unreadable(of, fmt.Sprintf("%s: row %d: %v", cell.File, row, err))
	}
	return true
}

func (l *listReader) readable(of *listFile) {
	l.lists.Entries++
	of.entries++
}

func (l *listReader) unreadable(of *listFile, place string) {
	l.readable(of)
	of.bad++
	l.lists.Add(place)
}

// isWithdrawn reports whether a file is DROP's list of withdrawn requests.
func isWithdrawn(file sources.File) bool {
	return slices.ContainsFunc(file.Columns, func(c string) bool { return strings.EqualFold(c, "ListType") })
}

// isDrop reports whether a file is a list of DROP that is to be answered.
func isDrop(file sources.File) bool {
	return len(file.Columns) == 2 && strings.EqualFold(file.Columns[0], "ID") && strings.EqualFold(file.Columns[1], "Hash")
}

// choose returns the columns of a list that hold entries.
func (l *listReader) choose(file sources.File) ([]string, error) {
	if isWithdrawn(file) {
		return nil, fmt.Errorf("%s is DROP's list of withdrawn requests: its people must no longer be suppressed. Leave it out, and remove its IDs from the other lists", file.URI)
	}
	if len(l.flags.Columns) > 0 {
		return l.flags.Columns, nil
	}
	if len(file.Columns) == 1 {
		return file.Columns, nil
	}
	var chosen []string
	for _, c := range file.Columns {
		if slices.Contains(listNames, strings.ToLower(c)) {
			chosen = append(chosen, c)
		}
	}
	for i, name := range personColumns(file.Columns) {
		if name != "" {
			chosen = append(chosen, file.Columns[i])
		}
	}
	switch {
	case len(chosen) > 0:
		return chosen, nil
	case file.NamesMayBeData():
		return nil, fmt.Errorf("%s has several columns, and none of a suppression list (%s); its first line looks like data. Add a header line, or choose with suppress_column", file.URI, strings.Join(listNames, ", "))
	}
	return nil, fmt.Errorf("%s has none of the columns of a suppression list (%s; or first_name and last_name, or full_name, with company_domain or company_name); it has: %s. Choose with suppress_column", file.URI, strings.Join(listNames, ", "), strings.Join(file.Columns, ", "))
}

// ListedIn returns the function with which the engine looks up people on lists;
// nil without lists.
func ListedIn(lists *suppression.Set) func(kind resolution.Identifier, value string) bool {
	if lists == nil {
		return nil
	}
	finder := lists.Finder()
	return func(kind resolution.Identifier, value string) bool {
		return finder.Lists(suppression.Kind(kind), value)
	}
}

// ShownPlaces is how many rows without an identifier are listed. All are
// counted.
const ShownPlaces = 10
