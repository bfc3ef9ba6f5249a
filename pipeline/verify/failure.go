package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Failure is a problem and its place. It never contains a value.
type Failure struct {
	File     string `json:"file"`                // empty for the dataset as a whole
	RowGroup int    `json:"row_group,omitempty"` // from 1; 0 without one
	Column   string `json:"column,omitempty"`
	Row      int64  `json:"row,omitempty"` // of the file, from 1; 0 without one
	Problem  string `json:"problem"`
	// Rows counts the rows with this problem; Row is the first of them.
	Rows int64 `json:"rows,omitempty"`
}

func (f Failure) String() string {
	var where []string
	if f.File != "" {
		where = append(where, f.File)
	}
	if f.RowGroup > 0 {
		where = append(where, fmt.Sprintf("row group %d", f.RowGroup))
	}
	if f.Column != "" {
		where = append(where, fmt.Sprintf("column %s", f.Column))
	}
	if f.Row > 0 {
		where = append(where, fmt.Sprintf("row %d", f.Row))
	}
	text := f.Problem
	if len(where) > 0 {
		text = strings.Join(where, ", ") + ": " + text
	}
	if f.Rows > 1 {
		text += fmt.Sprintf(" (and %d more rows of the row group)", f.Rows-1)
	}
	return text
}

// findings collects failures from several goroutines.
type findings struct {
	mu   sync.Mutex
	list []Failure
	more int
}

// report keeps failures while there is room.
func (f *findings) report(failures ...Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	room := min(len(failures), 4*maxFailures-len(f.list)) // more than are listed, so that the first ones are among them
	f.list = append(f.list, failures[:room]...)
	f.more += len(failures) - room
}

// sorted returns the failures to list, sorted by their places, and the number of the
// others.
func (f *findings) sorted() ([]Failure, int) {
	slices.SortStableFunc(f.list, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.RowGroup, b.RowGroup), cmp.Compare(a.Row, b.Row))
	})
	listed := min(len(f.list), maxFailures)
	return f.list[:listed], f.more + len(f.list) - listed
}

// rowFindings collects the problems of the rows of a row group, each with its first
// row and the number of rows.
type rowFindings struct {
	file     string
	rowGroup int
	before   int64 // rows of the file before the row group
	list     []Failure
}

// report keeps a problem of row i of the row group.
func (f *rowFindings) report(i int, column, problem string) {
	for j := range f.list {
		if known := &f.list[j]; known.Column == column && known.Problem == problem {
			known.Rows++
			return
		}
	}
	f.list = append(f.list, Failure{File: f.file, RowGroup: f.rowGroup, Column: column, Row: f.before + int64(i) + 1, Problem: problem, Rows: 1})
}
