// Package findcmd holds the command leadetl find, which says where people are and how to remove them.
package findcmd

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/pipeline/find"
)

// listKind is the kind of suppression lists.
const listKind = "suppression list"

// recordFormat is the number of the format of --json.
const recordFormat = 1

// record has what is found: counts in memory, and every place in a file.
type record struct {
	who    subjects
	files  []string // of the subjects
	began  time.Time
	to     *atomicfile.File // nil without --json
	json   *bufio.Writer    // keeps the first error
	hits   int64
	counts map[counted]int64
	places []*inPlace
	unread []unread
}

// subjects are the persons to find, and where the line of each is.
type subjects struct {
	*find.Subjects
	lines []wire.Cell // without their texts, by number
	valid int         // of these, with an identifier
	files int
	lists wire.SuppressionLists
}

// removal is a command that removes subjects from a place.
type removal struct {
	Place   string `json:"place"`
	Command string `json:"command"`
	Note    string `json:"note,omitempty"` // what the command alone does not do
}

// counted are records that name a subject alike, in one place.
type counted struct {
	subject  uint32
	place    int
	what, in string
}

// unread is what could not be read.
type unread struct {
	Name string `json:"place"`
	Why  string `json:"why"`
}

// hitJSON is a hit in --json.
type hitJSON struct {
	Subject   string   `json:"subject_file"`
	Line      int64    `json:"line"`
	Place     string   `json:"place"`
	What      string   `json:"what"`
	In        []string `json:"in"`
	File      string   `json:"file,omitempty"`
	Row       int64    `json:"row,omitempty"`
	Source    string   `json:"source,omitempty"`
	SourceRow int64    `json:"source_row,omitempty"`
	KeyHash   string   `json:"key_hash,omitempty"`
}

// inPlace is a place that is searched, as it is then.
type inPlace struct {
	Place                string      `json:"place"`
	Kind                 string      `json:"kind"`
	JobID                string      `json:"job_id,omitempty"`
	CompletedAt          time.Time   `json:"completed_at,omitzero"`
	ManifestSHA256       string      `json:"manifest_sha256,omitempty"`
	DirectoryFingerprint string      `json:"directory_fingerprint,omitempty"`
	Files                []find.File `json:"files"`
	Found                int64       `json:"found"`

	record *record
	number int
	found  int64
	open   bool // an open call is found
}

var _ find.Found = (*inPlace)(nil)

// newRecord begins a record, in a file that its owner alone can read unless its name is empty.
func newRecord(name string, files []string, who subjects) (r *record, err error) {
	r = &record{who: who, files: files, began: time.Now().UTC(), counts: map[counted]int64{}, unread: []unread{}, places: []*inPlace{}}
	r.json = bufio.NewWriter(io.Discard)
	if name != "" {
		if r.to, err = atomicfile.Create(name, 0o600); err != nil {
			return nil, fmt.Errorf("--json: %w", err)
		}
		r.json = bufio.NewWriter(r.to)
	}
	fmt.Fprintf(r.json, "{\n\"format\": %d,\n\"began_at\": %s,\n\"found\": [", recordFormat, encoded(r.began))
	return r, nil
}

// encoded is a value in JSON. Names of files may have any bytes, which JSON writes as U+FFFD.
func encoded(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("find: " + err.Error())
	}
	return text
}

// in begins a place.
func (r *record) in(kind, place string) *inPlace {
	p := &inPlace{Place: place, Kind: kind, Files: []find.File{}, record: r, number: len(r.places)}
	r.places = append(r.places, p)
	return p
}

// failed notes a place that could not be read; nothing without an error.
func (r *record) failed(place string, err error) {
	if err != nil {
		r.unread = append(r.unread, unread{place, cli.Reason(err)})
	}
}

// Unread notes what could not be read.
func (r *record) Unread(name string, why error) { r.failed(name, why) }

// Hit is of no place.
func (r *record) Hit(find.Hit) { panic("find: a hit outside of places") }

// Read is of no place.
func (r *record) Read(find.File) { panic("find: a file outside of places") }

// Unread notes what could not be read.
func (p *inPlace) Unread(name string, why error) { p.record.failed(name, why) }

// Read notes a file.
func (p *inPlace) Read(f find.File) { p.Files = append(p.Files, f) }

// Hit counts a record, and writes it.
func (p *inPlace) Hit(h find.Hit) {
	r := p.record
	p.found++
	p.open = p.open || h.What == find.OpenCall
	r.counts[counted{h.Subject, p.number, h.What, strings.Join(h.In, ", ")}]++
	if r.hits++; r.hits > 1 {
		r.json.WriteByte(',')
	}
	line := r.who.lines[h.Subject]
	r.json.WriteByte('\n')
	r.json.Write(encoded(hitJSON{line.File, line.Line, p.Place, h.What, h.In, h.File, h.Row, h.Source, h.SourceRow, h.KeyHash}))
}

// end ends the place.
func (p *inPlace) end() { p.Found = p.found }

// finish completes the file.
func (r *record) finish(removals []removal) error {
	if removals == nil {
		removals = []removal{}
	}
	for _, part := range []struct {
		name  string
		value any
	}{
		{"subjects", map[string]any{"files": r.files, "lines": r.who.valid, "lines_found": r.subjectsIn(false), "lines_on_lists": r.subjectsIn(true), "lines_without_identifier": r.who.lists.Bad, "fingerprint": r.who.Fingerprint()}},
		{"places", r.places}, {"not_read", r.unread}, {"remove", removals}, {"ended_at", time.Now().UTC()},
	} {
		if part.name == "subjects" {
			r.json.WriteString("\n]")
		}
		fmt.Fprintf(r.json, ",\n%q: %s", part.name, encoded(part.value))
	}
	r.json.WriteString("\n}\n")
	err := r.json.Flush()
	if r.to == nil {
		return err
	}
	if err == nil {
		err = r.to.Commit()
	}
	if err != nil {
		err = fmt.Errorf("--json: %w", err)
	}
	return err
}

// abort drops a file that was not finished.
func (r *record) abort() error {
	if r.to == nil {
		return nil
	}
	return r.to.Abort()
}

// subjectsIn counts the subjects that are on suppression lists, or elsewhere.
func (r *record) subjectsIn(lists bool) int {
	found := map[uint32]bool{}
	for c := range r.counts {
		if (r.places[c.place].Kind == listKind) == lists {
			found[c.subject] = true
		}
	}
	return len(found)
}

// print prints where each subject is, and what removes them.
func (r *record) print(to io.Writer, removals []removal) error {
	out := bufio.NewWriter(to)
	if len(r.counts) > 0 {
		table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(table, "LINE\tPLACE\tWHAT\tIN\tFOUND")
		for _, c := range r.sorted() {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.lineOf(c.subject), invisible.Escape(r.places[c.place].Place), c.what, c.in, figures.Grouped(r.counts[c]))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	r.summary(out)
	if len(removals) > 0 {
		fmt.Fprintln(out, "\nto remove them, run in this order, and then this command again:")
	}
	for _, remove := range removals {
		fmt.Fprintf(out, "  %s\n", invisible.Escape(cmp.Or(remove.Command, remove.Place+":")))
		if remove.Note != "" {
			fmt.Fprintf(out, "    %s\n", invisible.Escape(remove.Note))
		}
	}
	return out.Flush()
}

// summary counts lines and places. Suppression lists are counted apart: who is there stays there.
func (r *record) summary(out io.Writer) {
	places, with := 0, 0
	for _, p := range r.places {
		if p.Kind == listKind {
			continue
		}
		if places++; p.Found > 0 {
			with++
		}
	}
	fmt.Fprintf(out, "%s of %s found, in %s of %s", figures.Grouped(int64(r.subjectsIn(false))), figures.Plural(r.who.valid, "line"), figures.Grouped(int64(with)), figures.Plural(places, "place"))
	if places < len(r.places) {
		fmt.Fprintf(out, "; %s on suppression lists", figures.Grouped(int64(r.subjectsIn(true))))
	}
	fmt.Fprintln(out)
}

// sorted are the counts by line and place.
func (r *record) sorted() []counted {
	return slices.SortedFunc(maps.Keys(r.counts), func(a, b counted) int {
		return cmp.Or(cmp.Compare(a.subject, b.subject), cmp.Compare(a.place, b.place), cmp.Compare(a.what, b.what), cmp.Compare(a.in, b.in))
	})
}

// lineOf is the line of a subject, with its file if there are several.
func (r *record) lineOf(subject uint32) string {
	line := r.who.lines[subject]
	if r.who.files == 1 {
		return fmt.Sprint(line.Line)
	}
	return fmt.Sprintf("%s:%d", invisible.Escape(line.File), line.Line)
}
