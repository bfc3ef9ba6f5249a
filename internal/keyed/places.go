package keyed

import "fmt"

// Place is a byte of a file, with what it belongs to.
type Place struct {
	Of     string
	Offset int64
}

// Places lists bytes of all parts of a file, for tests that damage it: start, middle and
// end of every section, both ends of the table of contents, the checksum of every page, and the
// words of the trailer.
func (f *Columns) Places() (all []Place) {
	add := func(of string, offset int64) { all = append(all, Place{of, offset}) }
	for _, e := range f.table {
		if e.Count > 0 {
			add("the start of "+e.Name, e.Offset)
			add("the middle of "+e.Name, (e.Offset+e.end())/2)
			add("the end of "+e.Name, e.end()-1)
		}
	}
	for page := range f.sums {
		add(fmt.Sprint("the checksum of page ", page), f.body+4*int64(page))
	}
	trailer := int64(len(f.data)) - trailerBytes
	add("the start of the table of contents", f.body+4*int64(len(f.sums)))
	add("the end of the table of contents", trailer-1)
	for at := trailer; at < int64(len(f.data)); at += 8 {
		add(fmt.Sprint("word ", (at-trailer)/8, " of the trailer"), at)
	}
	return all
}
