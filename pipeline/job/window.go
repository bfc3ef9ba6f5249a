package job

import "github.com/leadetl/leadetl/sources"

// Window are consecutive parts whose rows are read in one go.
type Window struct {
	First int  `json:"first"` // number of the first part
	Parts int  `json:"parts"`
	Last  bool `json:"last,omitempty"` // it has the last part of the dataset
	// From is the place of the first row of part First.
	From sources.Start `json:"from"`
}

// WholeInput is the window of a run that is done in one piece.
var WholeInput = Window{Last: true}

// Until is the number of the part before which to stop; 0 means at the end.
func (w Window) Until() int {
	if w.Last {
		return 0
	}
	return w.First + w.Parts
}

// Reader reads the rows of the window.
func (w Window) Reader(input *sources.List, columns []string) (*sources.Reader, error) {
	if w == WholeInput {
		return input.Reader(columns)
	}
	return input.ReaderFrom(columns, w.From)
}
