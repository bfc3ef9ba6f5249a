package request

import "github.com/leadetl/leadetl/transforms/search"

// terms are the values of a list in the order given, each once.
type terms struct {
	values []string
	folded []string // of each value what tells it apart from others
}

// terms reads a list of strings. Of values that fold alike the first stands.
func (f *form) terms(name string, least, most int, read search.Term) (t terms) {
	known := make(map[string]struct{})
	f.list(name, least, most, func(text string) search.Fault {
		value, folded, wrong := read(search.Trimmed(text))
		if wrong != (search.Fault{}) {
			return wrong
		}
		if _, twice := known[folded]; !twice {
			known[folded] = struct{}{}
			t.values, t.folded = append(t.values, value), append(t.folded, folded)
		}
		return search.Fault{}
	})
	return t
}
