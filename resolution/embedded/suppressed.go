package embedded

import (
	"context"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
)

// listed reports whether an identifier is suppressed.
func (e *Engine) listed(kind resolution.Identifier, value string) bool {
	return e.options.Listed != nil && value != "" && e.options.Listed(kind, value)
}

// hides reports whether a person is suppressed, by any of their identifiers.
func (e *Engine) hides(p *people.Person) bool {
	if p == nil || e.options.Listed == nil {
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
	var p *people.Person
	var err error
	if networkURL != "" {
		p, err = e.directory.Person(ctx, networkURL)
	} else {
		p, _, err = e.directory.PersonByEmail(ctx, emailKey)
	}
	if err != nil {
		return false, unreadable(ctx, err)
	}
	return e.hides(p), nil
}
