package embedded

import (
	"context"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
)

// person finds a person by profile key; nil if they are unknown or suppressed.
func (e *Engine) person(ctx context.Context, key string) (*people.Person, error) {
	if e.directory == nil {
		return nil, nil
	}
	p, err := e.directory.Person(ctx, key)
	switch {
	case err != nil:
		return nil, unreadable(ctx, err)
	case e.hides(p):
		return nil, nil
	}
	return p, nil
}

func (e *Engine) networkToPhone(ctx context.Context, key string) (resolution.Answer, error) {
	p, err := e.person(ctx, key)
	if err != nil {
		return resolution.Answer{}, err
	}
	if p == nil {
		return noMatch(NotFound), nil
	}
	if len(p.Phones) == 0 {
		return noMatch(NoPhone), nil
	}
	return match(&resolution.Lead{Phone: p.Phones[0].Phone, PhoneRaw: p.PhoneRaw}), nil
}

func (e *Engine) enrichment(ctx context.Context, key string) (resolution.Answer, error) {
	p, err := e.person(ctx, key)
	if err != nil {
		return resolution.Answer{}, err
	}
	if p == nil {
		return noMatch(NotFound), nil
	}
	lead, err := e.lead(ctx, p)
	if err != nil {
		return resolution.Answer{}, err
	}
	return match(lead), nil
}

// lead returns all data of a person.
func (e *Engine) lead(ctx context.Context, p *people.Person) (*resolution.Lead, error) {
	hashes, err := allHashes(p)
	if err != nil {
		return nil, err
	}
	lead := &resolution.Lead{Contact: p.Contact, HashedEmails: hashes, NetworkURL: p.NetworkURL}
	if len(p.Phones) > 0 {
		lead.Phone, lead.PhoneRaw = p.Phones[0].Phone, p.PhoneRaw
	}
	if p.CompanyDomain != "" {
		if lead.Company, err = e.directory.Company(ctx, p.CompanyDomain); err != nil {
			return nil, unreadable(ctx, err)
		}
		if lead.Company == nil { // an unknown company: only its domain is known
			lead.Company = &resolution.Company{Domain: p.CompanyDomain}
		}
	}
	return lead, nil
}
