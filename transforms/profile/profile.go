// Package profile turns the address of a profile page into the key of a
// person, a company or a school.
//
// The one thing to know before using it: which hosts are the network is a
// setting (Rules.Hosts); an address anywhere else keeps its host and its path
// and counts as a person's.
package profile

// Kind is whose page an address is.
type Kind uint8

// The kinds of page.
const (
	Person Kind = iota
	Company
	School
	Showcase
	Other // a page of a host that is not the network: whose, nobody knows
)

// Rules says which hosts are the network. They are compared whole or as a
// suffix after a dot.
type Rules struct {
	Hosts []string // lower-case, without www.
}

// DefaultRules are the rules of the network the tool knows best.
func DefaultRules() Rules { return Rules{Hosts: []string{"linkedin.com"}} }

// URL is a parsed address.
type URL struct {
	Key  string // the address in its one spelling, without scheme
	Kind Kind
}

// Parse reads one cell.
func (r Rules) Parse(s string) (URL, error) {
	return URL{}, ErrInvalid
}

// ParsePerson reads one cell of a column of people.
func (r Rules) ParsePerson(s string) (key string, err error) {
	u, err := r.Parse(s)
	if err != nil {
		return "", err
	}
	switch u.Kind {
	case Company, School, Showcase:
		return "", ErrNotProfile
	}
	return u.Key, nil
}
