package sinks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
)

// ManifestFormat is the version of the manifest's own layout. It grows when a
// field changes its meaning, not when one is added.
const ManifestFormat = 1

// Manifest says what a dataset holds: its files with sizes and checksums, its
// columns, its totals, and the job it was made by. It holds no value of any
// row, but of a column that rows are partitioned by: those are in the files' names.
type Manifest struct {
	Format        int             `json:"format"`
	Program       string          `json:"program"` // name and version that wrote the dataset
	Operation     string          `json:"operation"`
	SchemaVersion int             `json:"schema_version"`
	RulesVersion  int             `json:"rules_version"`
	JobID         string          `json:"job_id"` // equal for equal input names, answers and settings
	Job           json.RawMessage `json:"job"`    // the settings behind JobID
	Inputs        []Input         `json:"inputs"`
	Schema        []Column        `json:"schema"`
	Partitions    []Partition     `json:"partitions,omitempty"`
	// PartitionBy is the column whose values are in the paths of the files, as
	// NAME=VALUE/part-…, and not in the files; empty without one.
	PartitionBy string    `json:"partition_by,omitempty"`
	Totals      Totals    `json:"totals"`
	Parts       []Part    `json:"parts"`
	CompletedAt time.Time `json:"completed_at"`

	// Run is what stored answers know the payer of the dataset by; empty without a service.
	Run string `json:"run,omitempty"`
	// CreditsTotal is what all runs have paid for the dataset since it was begun, and
	// CreditsThisRun what the last of them has. Both are nil without a service.
	CreditsTotal   *int64 `json:"credits_total,omitempty"`
	CreditsThisRun *int64 `json:"credits_this_run,omitempty"`
	// Judged says which of several resolvers with a least share of matches were asked on after
	// their first keys, by their names.
	Judged map[string]bool `json:"resolvers_judged,omitempty"`
	// Changes is nil unless the job asked for them.
	Changes *Changes `json:"changes,omitempty"`
}

// Changes says what differs from an earlier dataset, and which files have the rows that do.
type Changes struct {
	ChangeCounts
	From    string   `json:"from,omitempty"`    // where the earlier dataset was; empty without one
	By      string   `json:"by"`                // the column that rows are found by
	Compare []string `json:"compare,omitempty"` // columns that are compared besides the usual ones
	Was     []string `json:"was,omitempty"`     // columns whose earlier values are in the files
	Files   []File   `json:"files,omitempty"`
}

// ChangeCounts counts the rows that differ. The first dataset of a job has no earlier one:
// Since and SinceAt are empty.
type ChangeCounts struct {
	Since      string    `json:"since,omitempty"`       // job_id of the earlier dataset
	SinceNight string    `json:"since_night,omitempty"` // value of its partition dt, or of another one that is a day
	SinceAt    time.Time `json:"since_completed_at,omitzero"`
	Added      int64     `json:"added"`
	Changed    int64     `json:"changed"`
	Removed    int64     `json:"removed"`
	WithoutKey int64     `json:"without_key"` // rows that one dataset has, and that nothing tells from others
}

// ChangesSince are the counts since an earlier dataset, all zero.
func ChangesSince(m *Manifest) ChangeCounts {
	c := ChangeCounts{Since: m.JobID, SinceAt: m.CompletedAt}
	for _, p := range m.Partitions {
		if _, err := time.Parse(time.DateOnly, p.Value); err == nil || p.Name == "dt" {
			c.SinceNight = p.Value
		}
	}
	return c
}

// IsSince reports whether the earlier dataset is one with this manifest; nil is that of none. A
// dataset that is made again has the same job_id.
func (c ChangeCounts) IsSince(m *Manifest) bool {
	if m == nil {
		return c.Since == ""
	}
	return c.Since == m.JobID && c.SinceAt.Equal(m.CompletedAt)
}

// String is a line such as "+300 new, 12 changed, 4 gone since 2026-11-24".
func (c ChangeCounts) String() string {
	line := "+" + figures.Grouped(c.Added) + " new"
	if c.Since != "" {
		line += ", " + figures.Grouped(c.Changed) + " changed, " + figures.Grouped(c.Removed) + " gone"
	}
	if c.WithoutKey > 0 {
		line += ", " + figures.Grouped(c.WithoutKey) + " without key"
	}
	if c.Since == "" {
		return line + ", no earlier dataset"
	}
	return line + " since " + cmp.Or(c.SinceNight, c.SinceAt.UTC().Format(time.DateOnly))
}

// reconcile compares the counts with the files.
func (c *Changes) reconcile() error {
	var rows int64
	for _, f := range c.Files {
		rows += f.Rows
	}
	if counted := c.Added + c.Changed + c.Removed + c.WithoutKey; rows != counted {
		return fmt.Errorf("changes: %d rows in the files, %d counted", rows, counted)
	}
	return nil
}

// Selected are the names of the columns that the job selects; nil if it has all that follow from
// its other settings.
func (m *Manifest) Selected() []string {
	var job struct {
		Select []string `json:"select"`
	}
	_ = json.Unmarshal(m.Job, &job) // damaged: its columns are compared with all
	return job.Select
}

// KeptFrom are the names in the input of the columns that are kept from it, by their names in the
// dataset. That of PartitionBy is among them.
func (m *Manifest) KeptFrom() map[string]string {
	var job struct {
		Kept    []string          `json:"input_columns"`
		Renamed map[string]string `json:"renamed"`
	}
	if json.Unmarshal(m.Job, &job) != nil {
		return nil // damaged: no column is known to be kept
	}
	inputs, renamed := map[string]string{}, map[string]bool{}
	for name, input := range job.Renamed {
		inputs[name], renamed[input] = input, true
	}
	for _, input := range job.Kept {
		prefixed := "in_" + input // of a name that is also one of our columns
		own := inputs[prefixed] != "" || slices.Contains(job.Kept, prefixed) && !renamed[prefixed]
		switch has := prefixed == m.PartitionBy || slices.ContainsFunc(m.Schema, func(c Column) bool { return c.Name == prefixed }); {
		case renamed[input]:
		case has && !own:
			inputs[prefixed] = input
		default:
			inputs[input] = input
		}
	}
	return inputs
}

// Identifier is the column of the input that rows are resolved by.
func (m *Manifest) Identifier() string {
	var job struct {
		IDColumn string `json:"id_column"`
	}
	_ = json.Unmarshal(m.Job, &job) // damaged: it is not known
	return job.IDColumn
}

// LeavesOut reports whether the job had suppression lists.
func (m *Manifest) LeavesOut() bool { return m.has("suppression") }

// Asks reports whether the job had reference data or a service.
func (m *Manifest) Asks() bool { return m.has("answers") }

// HasPersons reports whether the rows of one key may be about several persons.
func (m *Manifest) HasPersons() bool { return m.has("from") }

// has reports whether the job has a setting.
func (m *Manifest) has(setting string) bool {
	var job map[string]json.RawMessage
	return json.Unmarshal(m.Job, &job) == nil && job[setting] != nil
}

// Own are the columns of Schema that are not kept from the input.
func (m *Manifest) Own() []Column {
	inputs := m.KeptFrom()
	return slices.DeleteFunc(slices.Clone(m.Schema), func(c Column) bool { _, kept := inputs[c.Name]; return kept })
}

// HasPlaces reports whether the rows say where they are in the input.
func (m *Manifest) HasPlaces() bool {
	own := m.Own()
	has := func(name string) bool { return slices.ContainsFunc(own, func(c Column) bool { return c.Name == name }) }
	return has("source") && has("source_row")
}

// Input is one input file as it was when its rows were read.
type Input struct {
	URI        string    `json:"uri"`
	Bytes      int64     `json:"bytes"` // -1 when unknown (standard input)
	ModifiedAt time.Time `json:"modified_at,omitzero"`
	ETag       string    `json:"etag,omitempty"` // on S3
}

// Part is one run of consecutive input rows and the files made from it.
type Part struct {
	// File is the part's file. Where rows are partitioned by a column it is the sum
	// of Files, and no file has its name.
	File
	// Files are the files of a part whose rows are partitioned by a column, one for
	// each value, in the order of their names.
	Files   []File `json:"files,omitempty"`
	Rejects *File  `json:"rejects,omitempty"` // nil when every line was a row
	// Suppressed has the ids of the suppressed rows; nil without any, and unless it is asked for.
	Suppressed *File `json:"suppressed,omitempty"`
	// Asked has what each of several resolvers says about the keys; nil if it was not asked.
	Asked  *File  `json:"asked,omitempty"`
	Totals Totals `json:"totals"`
	// FirstReject is the first row or line of the part that has no answer because
	// it is wrong itself; nil without any.
	FirstReject *FirstReject `json:"first_reject,omitempty"`
	// InputDigest is a checksum of the rows the part was made from (XXH3-128
	// of the columns that were read): how a resumed run knows that its input
	// is still the same.
	InputDigest string `json:"input_digest"`
}

// FirstReject says where a list is wrong first, and why, but not what is there.
type FirstReject struct {
	URI    string `json:"uri"`
	Row    int64  `json:"row"` // 1-based, without the header
	Reason string `json:"reason"`
}

// FirstOf is the first reject of parts in their order.
func FirstOf(parts []Part) *FirstReject {
	for _, p := range parts {
		if p.FirstReject != nil {
			return p.FirstReject
		}
	}
	return nil
}

// Data are the Parquet files that hold the part's rows.
func (p *Part) Data() []File {
	if p.Files != nil {
		return p.Files
	}
	return []File{p.File}
}

// Beside are the files beside those with rows; nil for one that the part does not have.
func (p *Part) Beside() [3]**File { return [...]**File{&p.Rejects, &p.Suppressed, &p.Asked} }

// All are all files of the part, those with rows first.
func (p *Part) All() []File {
	all := slices.Clone(p.Data())
	for _, f := range p.Beside() {
		if *f != nil {
			all = append(all, **f)
		}
	}
	return all
}

// Files are all files with rows that the manifest lists.
func (m *Manifest) Files() (all []File) {
	for i := range m.Parts {
		all = append(all, m.Parts[i].All()...)
	}
	if m.Changes != nil {
		all = append(all, m.Changes.Files...)
	}
	return all
}

// Unsummed makes p independent of the part it was copied from, and returns its
// files for Dataset.Sum to fill in.
func (p *Part) Unsummed() (files []*File) {
	p.Files = slices.Clone(p.Files)
	for i := range p.Files {
		files = append(files, &p.Files[i])
	}
	if p.Files == nil {
		files = append(files, &p.File)
	}
	for _, f := range p.Beside() {
		if *f != nil {
			own := **f
			*f = &own
			files = append(files, *f)
		}
	}
	return files
}

// Summed reports whether the checksums of the part are known.
func (p *Part) Summed() bool {
	return !slices.ContainsFunc(p.Data(), func(f File) bool { return f.SHA256 == "" })
}

// sumFiles are the rows and bytes of the part's files together.
func (p *Part) sumFiles() (rows, bytes int64) {
	for _, f := range p.Data() {
		rows, bytes = rows+f.Rows, bytes+f.Bytes
	}
	return rows, bytes
}

// Totals counts what became of lines. A line is either a row, with exactly
// one outcome, or malformed.
type Totals struct {
	Rows       int64 `json:"rows"`
	Matched    int64 `json:"matched"`
	NoMatch    int64 `json:"no_match"`
	Rejected   int64 `json:"rejected"`
	Failed     int64 `json:"failed"`
	Suppressed int64 `json:"suppressed"`
	Skipped    int64 `json:"skipped"`
	// Searches counts the input rows where these are keyword searches, of
	// which each has as many rows as it found leads, and one at least.
	Searches int64 `json:"searches,omitempty"`
	// SourceRows counts the input rows where one may have more than one row, or none; it is
	// not set for other jobs.
	SourceRows int64 `json:"input_rows,omitempty"`
	// NotSelected counts the input rows that --where leaves out of the dataset.
	NotSelected int64 `json:"not_selected,omitempty"`
	// Malformed counts the lines that are no row; they are in _rejects.
	Malformed int64 `json:"malformed"`
	// Unusual counts the rows whose email address RFC 5321 forbids. They are among the
	// others.
	Unusual int64 `json:"unusual_addresses,omitempty"`
	// Complete counts the rows that have all columns a job wants of its resolvers.
	Complete int64 `json:"complete,omitempty"`
	// Reasons counts rows by outcome and reason, and malformed lines under
	// "malformed".
	Reasons map[string]map[string]int64 `json:"reasons,omitempty"`
	// Resolvers counts by resolver, where a job has several.
	Resolvers map[string]ResolverTotals `json:"resolvers,omitempty"`
}

// ResolverTotals counts what one of several resolvers has done for the rows of a part, or of all
// parts: a key that several parts have counts in each.
type ResolverTotals struct {
	Asked   int64 `json:"asked"`   // distinct keys with an answer of it or an open call
	Matched int64 `json:"matched"` // keys of these that it has matched
	Credits int64 `json:"credits"` // cost of these answers, whenever they were paid
	// Added counts the rows with a wanted value of it, or where nothing is wanted the rows that
	// it has answered first.
	Added int64 `json:"added"`
	// Passed counts the rows that went on without it, and that ask it once more when the job is
	// run again.
	Passed int64 `json:"passed,omitempty"`
	// Unknown counts the rows that went on without it because its call may have been billed, and that
	// ask it once more with --retry-unknown.
	Unknown int64 `json:"unknown,omitempty"`
}

// CountPassed counts a row that went on without resolvers; unknown says that the call of one may have
// been billed.
func (t *Totals) CountPassed(resolvers iter.Seq2[string, bool]) {
	for name, unknown := range resolvers {
		if unknown {
			t.CountResolver(name, ResolverTotals{Unknown: 1})
		} else {
			t.CountResolver(name, ResolverTotals{Passed: 1})
		}
	}
}

// CountResolver adds the counts of a resolver.
func (t *Totals) CountResolver(name string, n ResolverTotals) {
	if t.Resolvers == nil {
		t.Resolvers = map[string]ResolverTotals{}
	}
	sum := t.Resolvers[name]
	sum.Asked += n.Asked
	sum.Matched += n.Matched
	sum.Credits += n.Credits
	sum.Added += n.Added
	sum.Passed += n.Passed
	sum.Unknown += n.Unknown
	t.Resolvers[name] = sum
}

// ByOutcome are the counts of rows by the name of their outcome.
func (t *Totals) ByOutcome() map[string]*int64 {
	return map[string]*int64{
		"matched": &t.Matched, "no_match": &t.NoMatch, "rejected": &t.Rejected,
		"failed": &t.Failed, "suppressed": &t.Suppressed, "skipped": &t.Skipped,
	}
}

// InputRows counts the rows of the input.
func (t *Totals) InputRows() int64 {
	switch {
	case t.SourceRows > 0:
		return t.SourceRows
	case t.Searches > 0:
		return t.Searches
	}
	return t.Rows
}

// InputLines counts the lines of which Rejects are a share: the rows, or the searches that they
// are of, and the lines that are not selected or malformed.
func (t *Totals) InputLines() int64 {
	n := t.Rows
	if t.Searches > 0 {
		n = t.Searches
	}
	return n + t.NotSelected + t.Malformed
}

// RejectShare is Rejects of InputLines, or the rejected of the selected rows, whichever share is
// more: rows that --where leaves out say nothing about the others.
func (t *Totals) RejectShare() (rejects, of int64) {
	rejects, of = t.Rejects(), t.InputLines()
	if selected := of - t.NotSelected - t.Malformed; t.NotSelected > 0 && float64(t.Rejected)*float64(of) > float64(rejects)*float64(selected) {
		return t.Rejected, selected
	}
	return rejects, of
}

// Rejects counts the rows and lines that were given up: rejected or malformed.
func (t *Totals) Rejects() int64 { return t.Rejected + t.Malformed }

// ManyRejects reports whether RejectShare is so much, 5% or more, that a person should know of it.
func (t *Totals) ManyRejects() bool {
	rejects, of := t.RejectShare()
	return rejects > 0 && float64(rejects)*20 >= float64(of)
}

// RejectReasons counts Rejects by reason.
func (t *Totals) RejectReasons() map[string]int64 {
	reasons := maps.Clone(t.Reasons["rejected"])
	if reasons == nil {
		reasons = map[string]int64{}
	}
	for reason, n := range t.Reasons["malformed"] {
		reasons[reason] += n
	}
	return reasons
}

// Outcomes is the sum of the rows by outcome.
func (t *Totals) Outcomes() (sum int64) {
	for _, n := range t.ByOutcome() {
		sum += *n
	}
	return sum
}

// CountReason adds n to the count of one outcome's reason.
func (t *Totals) CountReason(outcome, reason string, n int64) {
	if t.Reasons == nil {
		t.Reasons = map[string]map[string]int64{}
	}
	if t.Reasons[outcome] == nil {
		t.Reasons[outcome] = map[string]int64{}
	}
	t.Reasons[outcome][reason] += n
}

// Add adds the counts of another part.
func (t *Totals) Add(o Totals) {
	t.Rows += o.Rows
	t.Matched += o.Matched
	t.NoMatch += o.NoMatch
	t.Rejected += o.Rejected
	t.Failed += o.Failed
	t.Suppressed += o.Suppressed
	t.Skipped += o.Skipped
	t.Searches += o.Searches
	t.SourceRows += o.SourceRows
	t.NotSelected += o.NotSelected
	t.Malformed += o.Malformed
	t.Unusual += o.Unusual
	t.Complete += o.Complete
	for outcome, reasons := range o.Reasons {
		for reason, n := range reasons {
			t.CountReason(outcome, reason, n)
		}
	}
	for name, n := range o.Resolvers {
		t.CountResolver(name, n)
	}
}

// Reconcile recomputes every total of the manifest from its parts and reports
// the first that differs: rows in = matched + no_match + rejected + failed +
// suppressed + skipped, part by part and in sum, and each but matched is the sum
// of its reasons.
func (m *Manifest) Reconcile() error {
	var sum Totals
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Rows != p.Totals.Rows || p.Rows != p.Totals.Outcomes() {
			return fmt.Errorf("%s: %d rows in the file, %d counted, %d by outcome", p.Name, p.Rows, p.Totals.Rows, p.Totals.Outcomes())
		}
		if rows, bytes := p.sumFiles(); rows != p.Rows || bytes != p.Bytes {
			return fmt.Errorf("%s: %d rows and %d bytes, its files have %d and %d", p.Name, p.Rows, p.Bytes, rows, bytes)
		}
		if parted := p.Files != nil; parted != (m.PartitionBy != "") {
			return fmt.Errorf("%s: files by value in a dataset that is not partitioned by a column, or none in one that is", p.Name)
		}
		var malformed int64
		if p.Rejects != nil {
			malformed = p.Rejects.Rows
		}
		if p.Suppressed != nil && p.Suppressed.Rows != p.Totals.Suppressed {
			return fmt.Errorf("%s: %d ids of suppressed rows, %d counted", p.Name, p.Suppressed.Rows, p.Totals.Suppressed)
		}
		if asked, counted := p.asked(); asked != counted {
			return fmt.Errorf("%s: %d answers and open calls of its keys in the file, %d counted by resolver", p.Name, asked, counted)
		}
		if malformed != p.Totals.Malformed {
			return fmt.Errorf("%s: %d lines in its rejects, %d counted", p.Name, malformed, p.Totals.Malformed)
		}
		if p.Totals.Searches > p.Totals.Rows {
			return fmt.Errorf("%s: %d searches, and %d rows", p.Name, p.Totals.Searches, p.Totals.Rows)
		}
		if selected := p.Totals.SourceRows - p.Totals.NotSelected; selected < 0 || selected > p.Totals.Rows {
			return fmt.Errorf("%s: %d input rows without %d that are not selected, and %d rows", p.Name, p.Totals.SourceRows, p.Totals.NotSelected, p.Totals.Rows)
		}
		if err := p.Totals.reconcileReasons(); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		sum.Add(p.Totals)
	}
	if m.Changes != nil {
		if err := m.Changes.reconcile(); err != nil {
			return err
		}
	}
	if total, last := m.CreditsTotal, m.CreditsThisRun; (total == nil) != (last == nil) || total != nil && (*last < 0 || *last > *total) {
		return errors.New("credits_this_run is more than credits_total, or one of them is missing")
	}
	if fmt.Sprint(m.Totals) != fmt.Sprint(sum) {
		return fmt.Errorf("totals %+v do not equal the sum of the parts %+v", m.Totals, sum)
	}
	return nil
}

// asked counts the answers and open calls of the part's keys: in the file, and by resolver.
func (p *Part) asked() (rows, counted int64) {
	if p.Asked != nil {
		rows = p.Asked.Rows
	}
	for _, n := range p.Totals.Resolvers {
		counted += n.Asked
	}
	return rows, counted
}

// reconcileReasons compares every count that has reasons with their sum.
func (t *Totals) reconcileReasons() error {
	counts := t.ByOutcome()
	counts["malformed"] = &t.Malformed
	delete(counts, "matched") // a match has no reason
	for _, outcome := range slices.Sorted(maps.Keys(t.Reasons)) {
		if _, known := counts[outcome]; !known {
			return fmt.Errorf("reasons of %q", outcome)
		}
	}
	for _, outcome := range slices.Sorted(maps.Keys(counts)) {
		var sum int64
		for _, n := range t.Reasons[outcome] {
			sum += n
		}
		if sum != *counts[outcome] {
			return fmt.Errorf("%d %s, %d by reason", *counts[outcome], outcome, sum)
		}
	}
	return nil
}
