package sources

import (
	"os"
	"path/filepath"

	"github.com/leadetl/leadetl/internal/objects"
)

// Respell gives the inputs the names and the order of an earlier run, if those
// names refer to the same files: a.csv, ./a.csv, its absolute path and a link
// to it are the same file. Otherwise it changes nothing. Call it before a
// Reader is made.
func (l *List) Respell(names []string) {
	if len(names) != len(l.inputs) {
		return
	}
	left := map[string]*input{} // by their names
	for _, in := range l.inputs {
		left[in.URI] = in
	}
	inOrder := make([]*input, len(names))
	others := false
	for i, name := range names {
		if in := left[name]; in != nil {
			inOrder[i] = in
			delete(left, name)
			continue
		}
		others = true
	}
	if !others {
		l.inputs = inOrder
		return
	}
	for i, name := range names {
		if inOrder[i] != nil {
			continue
		}
		in := calledOtherwise(left, name)
		if in == nil {
			return
		}
		delete(left, in.URI)
		inOrder[i] = in
	}
	for i, in := range inOrder {
		in.URI = names[i]
	}
	l.inputs = inOrder
}

// calledOtherwise finds the input that a local name refers to.
func calledOtherwise(inputs map[string]*input, name string) *input {
	if objects.Is(name) {
		return nil
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil
	}
	info, missing := os.Stat(name)
	for _, in := range inputs {
		if in.info == nil {
			continue
		}
		other, err := filepath.Abs(in.URI)
		if err == nil && other == path || missing == nil && os.SameFile(info, in.info) {
			return in
		}
	}
	return nil
}
