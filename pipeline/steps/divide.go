package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sources"
)

// ErrNotDivided means that not all input files are surveyed yet.
var ErrNotDivided = errors.New("the input is not surveyed yet")

// Division says which parts a dataset has, and which of them are made together.
type Division struct {
	Rows      int64        `json:"rows"`
	Malformed int64        `json:"malformed"` // without those of Parquet files, which are not known
	Parts     int          `json:"parts"`
	Windows   []job.Window `json:"windows"`
}

const divisionName = "windows"

func surveyName(file int) string { return fmt.Sprintf("survey/%d", file) }

// Files is the number of input files.
func (r *Run) Files() int { return len(r.run.Input.Files()) }

// Survey counts the rows of an input file.
func (r *Run) Survey(ctx context.Context, file int) error {
	if r.Finished() {
		return nil
	}
	var s sources.Survey
	if err := r.getJSON(ctx, surveyName(file), &s); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s, err := r.run.Input.Survey(ctx, file, r.job.WindowBytes)
	if err != nil {
		return err
	}
	return r.putJSON(ctx, surveyName(file), s)
}

// Surveyed lists the files that Survey has counted.
func (r *Run) Surveyed(ctx context.Context) (map[int]bool, error) {
	names, err := r.folder.List(ctx, r.Name("survey/"))
	done := map[int]bool{}
	for _, name := range names {
		var file int
		if _, err := fmt.Sscanf(name, r.Name("survey/%d"), &file); err == nil {
			done[file] = true
		}
	}
	return done, err
}

// Division returns the division; the error is ErrNotDivided before Divide.
func (r *Run) Division(ctx context.Context) (d Division, err error) {
	if r.Finished() {
		return d, nil
	}
	err = r.getJSON(ctx, divisionName, &d)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotDivided
	}
	return d, err
}

// Divide divides the rows into parts and windows. All files must be surveyed. Any
// process may do it, with the same result.
func (r *Run) Divide(ctx context.Context) (Division, error) {
	d, err := r.Division(ctx)
	if !errors.Is(err, ErrNotDivided) {
		return d, err
	}
	done, err := r.Surveyed(ctx)
	if err != nil {
		return d, err
	}
	var names []string
	for file := range r.Files() {
		if !done[file] {
			return d, fmt.Errorf("%w: %s", ErrNotDivided, r.run.Input.Files()[file].URI)
		}
		names = append(names, r.Name(surveyName(file)))
	}
	read, err := r.folder.GetAll(ctx, names)
	if err != nil {
		return d, err
	}
	surveys := make([]sources.Survey, len(read))
	for i, data := range read {
		if err := decode(r.folder.Path(names[i]), data, &surveys[i]); err != nil {
			return d, err
		}
	}
	d = divide(surveys, r.run.Input.Files(), int64(r.run.Job.RowsPerPart), r.job.WindowBytes)
	return d, r.putJSON(ctx, divisionName, d)
}

// place is where reading can begin.
type place struct {
	start sources.Start
	rows  int64 // before it, in the whole input
	bytes int64 // stored bytes before it, in the whole input
}

// places lists where reading can begin.
func places(surveys []sources.Survey, files []sources.File) (all []place) {
	rows, bytes := int64(0), int64(0)
	for file, s := range surveys {
		for _, m := range append([]sources.Mark{{}}, s.Marks...) {
			all = append(all, place{sources.Start{File: file, Mark: m}, rows + m.Rows, bytes + m.Offset})
		}
		rows, bytes = rows+s.Rows, bytes+max(files[file].Size, 0)
	}
	return all
}

// isBefore reports whether reading can begin there for a part with so many rows
// before it. Malformed lines after the last of these rows belong to the part, so
// a mark within a file must be before that row.
func (p place) isBefore(rows int64) bool {
	return p.rows < rows || p.rows == rows && p.start.Mark == sources.Mark{}
}

// divide puts a part into the window of the part before it, unless reading can
// begin at least windowBytes later.
func divide(surveys []sources.Survey, files []sources.File, perPart, windowBytes int64) (d Division) {
	for _, s := range surveys {
		d.Rows, d.Malformed = d.Rows+s.Rows, d.Malformed+s.Malformed
	}
	d.Parts = int(max((d.Rows+perPart-1)/perPart, 1))
	all, at := places(surveys, files), 0
	d.Windows = []job.Window{{Parts: 1, From: all[0].start}} // malformed lines before the first row are in part 0
	begun := all[0].bytes
	for part := 1; part < d.Parts; part++ {
		before := int64(part) * perPart
		for i := at + 1; i < len(all) && all[i].rows <= before; i++ {
			if all[i].isBefore(before) {
				at = i
			}
		}
		if all[at].bytes-begun < windowBytes {
			d.Windows[len(d.Windows)-1].Parts++
			continue
		}
		w := job.Window{First: part, Parts: 1, From: all[at].start}
		w.From.Skip = before - all[at].rows
		d.Windows, begun = append(d.Windows, w), all[at].bytes
	}
	d.Windows[len(d.Windows)-1].Last = true
	return d
}
