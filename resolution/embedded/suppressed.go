package embedded

import (
	"context"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
)

// listed reports whether an identifier is suppressed.
func (e *Engine) listed(kind resolution.Identifier, value string) bool {
	return e.options.Listed != nil && value != "" && e.options.Listed(kind, value)
}

// hides reports whether a person is suppressed, by any of their identifiers.
func (e *Engine) hides(p *people.Person) bool {
	if e.options.Listed == nil {
		return false
	}
	if e.listed(resolution.NetworkURL, p.NetworkURL) {
		return true
	}
	for _, key := range p.EmailKeys {
		if e.listed(resolution.Email, key) {
			return true
		}
	}
	for _, number := range p.Phones {
		if e.listed(resolution.Phone, number.Phone) {
			return true
		}
	}
	return false
}

// hidesWho reports whether the person with a profile, or else with an email, is suppressed.
func (e *Engine) hidesWho(ctx context.Context, networkURL, emailKey string) (bool, error) {
	if e.listed(resolution.NetworkURL, networkURL) || e.listed(resolution.Email, emailKey) {
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	b := &batch{engine: e, keys: []string{emailKey}, rows: []uint32{keyed.None}, people: make([]people.Entry, 1)}
	who := &b.people[0].Person
	if networkURL == "" {
		var keys resolution.Texts
		keys.Add([]byte(emailKey))
		err := b.findByDigest(&keys, people.Whole)
		return err == nil && b.emails[0] != "" && e.hides(who), err
	}
	if err := e.directory.PeopleRows([]string{networkURL}, b.rows); err != nil || b.rows[0] == keyed.None {
		return false, readable(err)
	}
	err := e.directory.FillPerson(b.rows[0], &b.arena, &b.people[0])
	return e.hides(who), readable(err)
}
