package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/place"
)

// at begins the names of the files below a URI.
func (s *site) at(uri string) string {
	if s.plan.outOnS3 {
		return strings.TrimPrefix(uri, "s3://")
	}
	return strings.TrimSuffix(strings.TrimPrefix(uri, "/"), "/") + "/"
}

// files are the files at or below a URI, by their names in it. What is damaged is as it was before.
func (s *site) files(uri string) map[string]string {
	files, at := s.on(s.plan.outOnS3).Files(), s.at(uri)
	if d := s.harm; d != nil && d.inBucket == s.plan.outOnS3 && d.isThere(s) {
		if files[d.file] = d.before.text; !d.before.there {
			delete(files, d.file)
		}
	}
	all := map[string]string{}
	for name, text := range files {
		if below, is := strings.CutPrefix(name, at); is {
			all[below] = text
		}
	}
	return all
}

// checkSeen checks what readers see of a night at this moment, while a machine is at rest: a
// dataset with _SUCCESS is whole, and no file is in its place that is not whole.
func (h *history) checkSeen(n night) {
	s := h.disturbed
	files := s.files(n.out)
	_, finished := files[sinks.SuccessName]
	if finished {
		for _, problem := range n.verify(files) {
			s.wrongly("night %d is finished, and %s", n.number, problem)
		}
	}
	for name, text := range files {
		if path.Ext(name) != ".parquet" || strings.HasPrefix(path.Base(name), ".") {
			continue
		}
		if _, err := rowsOf(text); err != nil {
			s.wrongly("night %d has a broken %s: %v", n.number, name, err)
		}
		known := text == h.want[n.number][name] || n.replaces() && text == h.want[n.number-1][name]
		if !known && !h.plan.buys() && !(h.plan.grows && (!finished || s.short || n.anew)) {
			s.wrongly("night %d has another %s", n.number, name)
		}
	}
	h.compareBefore(n)
	for _, service := range s.services {
		s.wrong = append(s.wrong, service.wrong...)
		service.wrong = nil
	}
}

// verify compares a finished dataset, or the changes between two, with what its manifest says.
func (n night) verify(files map[string]string) (problems []string) {
	manifest := sinks.ManifestName
	var listed []sinks.File
	var err error
	if n.compares {
		manifest = place.ComparisonName
		c := new(sinks.Comparison)
		err = json.Unmarshal([]byte(files[manifest]), c)
		listed = c.Files
	} else {
		m := new(sinks.Manifest)
		err = json.Unmarshal([]byte(files[manifest]), m)
		listed = m.Files()
	}
	if err != nil {
		return []string{fmt.Sprint("its manifest: ", err)}
	}
	if want := fmt.Sprintf("sha256 %x %s\n", sha256.Sum256([]byte(files[manifest])), manifest); files[sinks.SuccessName] != want {
		problems = append(problems, fmt.Sprintf("its _SUCCESS is not of its manifest: %q", files[sinks.SuccessName]))
	}
	names := map[string]bool{}
	for _, f := range listed {
		names[f.Name] = true
		sum := sha256.Sum256([]byte(files[f.Name]))
		if hex.EncodeToString(sum[:]) != f.SHA256 {
			problems = append(problems, f.Name+" is not as its manifest says")
		}
	}
	for name := range files {
		if path.Ext(name) == ".parquet" && !names[name] {
			problems = append(problems, "its manifest does not list "+name)
		}
	}
	return problems
}

// compare compares a dataset with that of the undisturbed site.
func (h *history) compare(n night) {
	s := h.disturbed
	got, want := s.files(n.out), h.want[n.number]
	if names, wanted := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(names, wanted) {
		s.wrongly("night %d has the files %q, want %q", n.number, names, wanted)
		return
	}
	for name := range want {
		a, b := n.content(name, got[name]), n.content(name, want[name])
		if path.Ext(name) == ".parquet" && a != b {
			s.wrongly("night %d has another %s: %s", n.number, name, difference(got[name], want[name]))
		} else if a != b {
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			from := max(at-60, 0)
			s.wrongly("night %d has another %s: %.120q, want %.120q", n.number, name, a[from:], b[from:])
		}
	}
}

// compareTold compares which entries of lists a dataset is said to have found.
func (h *history) compareTold(n night) {
	if got, want := h.disturbed.told[n.number], h.undisturbed.told[n.number]; got != want {
		h.disturbed.wrongly("night %d is said to have found %q, want %q", n.number, got, want)
	}
}

// compareBefore compares the datasets of earlier nights that are not replaced.
func (h *history) compareBefore(n night) {
	for number := range n.number {
		if before := h.night(number); before.out != n.out {
			h.compare(before)
		}
	}
}

// difference is in which columns two Parquet files differ.
func difference(a, b string) (columns string) {
	mine, err := rowsOf(a)
	other, failed := rowsOf(b)
	if err != nil || failed != nil || len(mine) != len(other) {
		return fmt.Sprint(mine, err, other, failed)
	}
	for i := range mine {
		if mine[i] != other[i] {
			columns += mine[i] + ", want " + other[i] + " "
		}
	}
	return columns
}

// content is what has to be the same of a file, whatever happened to its run.
func (n night) content(name, text string) string {
	switch {
	case strings.HasPrefix(name, sinks.AskedFolder+"/"):
		rows, err := rowsOf(text)
		if n.replaces() || n.anew { // each run that begins it anew counts what it pays
			rows = slices.DeleteFunc(rows, func(column string) bool { return strings.HasPrefix(column, "paid_here") })
		}
		return fmt.Sprint(rows, err)
	case name == sinks.ReportPageName, name == sinks.SuccessName: // verify looks at this one
		return ""
	case path.Ext(name) != ".json":
		return text
	}
	var of map[string]any
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		return err.Error()
	}
	if name == sinks.ReportName {
		maps.DeleteFunc(of, func(member string, _ any) bool { return !slices.Contains(ofReport, member) })
	}
	if n.replaces() || n.anew {
		delete(of, "credits_total")
	}
	same, _ := json.Marshal(lasting(of))
	return string(same)
}

// ofReport are the members of a report that do not tell the history of its run.
var ofReport = []string{"format", "program", "operation", "job_id", "inputs", "output", "files", "totals", "match_rate", "changes", "stop", "suppression_entries"}

// passing are the members of a manifest that do: moments, and what this run and not another one did.
var passing = []string{"completed_at", "modified_at", "since_completed_at", "of_completed_at", "run", "credits_this_run"}

// lasting is what remains of a value of JSON without passing.
func lasting(v any) any {
	switch v := v.(type) {
	case map[string]any:
		name, _ := v["name"].(string)
		for member, of := range v {
			if slices.Contains(passing, member) || strings.HasPrefix(name, sinks.AskedFolder+"/") && slices.Contains([]string{"bytes", "sha256", "etag"}, member) {
				delete(v, member)
			} else {
				v[member] = lasting(of)
			}
		}
	case []any:
		for i := range v {
			v[i] = lasting(v[i])
		}
	}
	return v
}

// rowsOf are the rows of a Parquet file, without the moments of answers.
func rowsOf(text string) (rows []string, err error) {
	defer func() { // the library panics at some damaged files
		if r := recover(); r != nil {
			err = fmt.Errorf("not readable: %v", r)
		}
	}()
	f, err := file.NewParquetReader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reader, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	schema, err := reader.Schema()
	if err != nil {
		return nil, err
	}
	leaves, groups := map[int]bool{}, []int{}
	for i := range f.MetaData().Schema.NumColumns() {
		leaves[i] = true
	}
	for i := range f.NumRowGroups() {
		groups = append(groups, i)
	}
	for i, field := range schema.Fields() { // not all at a time: a panic of another goroutine ends the test
		column, err := reader.GetFieldReader(context.Background(), i, leaves, groups)
		if err != nil {
			return nil, err
		}
		values, err := reader.ReadColumn(groups, column)
		if err != nil {
			return nil, err
		}
		if field.Name != "received_at" {
			rows = append(rows, fmt.Sprint(field.Name, values.Chunks()))
		}
		values.Release()
	}
	return rows, nil
}

// checkLeft checks that nothing is left of a run that has ended.
func (h *history) checkLeft() {
	s := h.disturbed
	for name := range s.objects.Objects() {
		for _, temporary := range []string{"/_lock", "/state/runs/", "/state/lease/"} {
			if strings.Contains(name, temporary) {
				s.wrongly("%s is left", name)
			}
		}
	}
	files := s.disk.Files()
	for name := range files {
		run, _, ofJournal := strings.Cut(name, "/journal/")
		if _, is := files[run+"/beside/header"]; ofJournal && !is {
			continue // a power cut after a removal that was killed brings it back, and it counts as none
		}
		if strings.HasPrefix(name, "state/runs/") {
			s.wrongly("%s is left", name)
		}
	}
}
