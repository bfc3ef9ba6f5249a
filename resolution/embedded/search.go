package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/searches"
)

var _ resolution.Searcher = (*Engine)(nil)

// noDirectory is the edition of an engine without a directory.
const noDirectory = "none"

// Edition names the searches of the directory.
func (e *Engine) Edition() string {
	if e.directory == nil {
		return noDirectory
	}
	return e.directory.Edition()
}

// Search finds a page of leads. Without searches there are no leads.
func (e *Engine) Search(ctx context.Context, s resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
	result, err := e.search(ctx, s, p)
	if err != nil {
		return resolution.SearchResult{}, fmt.Errorf("embedded search: %w", err)
	}
	return result, nil
}

func (e *Engine) search(ctx context.Context, s resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
	result := resolution.SearchResult{}
	if p.Number < 1 || p.Limit < 1 || p.HEMs < 0 {
		return result, fmt.Errorf("%w: a page and its limit are counted from 1", resolution.ErrInvalid)
	}
	skip := int64(math.MaxInt64) // a page after the last one
	if p.Number-1 <= math.MaxInt64/p.Limit {
		skip = int64(p.Number-1) * int64(p.Limit)
	}
	if e.directory == nil {
		return result, withoutDirectory(ctx, s)
	}
	found, total, err := e.directory.FindSearches(ctx, s, skip, p.Limit)
	if err != nil {
		return result, unsearchable(ctx, err)
	}
	result.Total = total
	leads := make([]resolution.FoundLead, len(found))
	err = inShares(len(found), func(from, to int) (err error) {
		companies := map[string]*resolution.Company{}
		for i := from; i < to; i++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			if leads[i], err = e.foundLead(ctx, found[i], p, companies); err != nil {
				return err
			}
		}
		return nil
	})
	result.Leads = resolution.NewAnswers()
	for i := range leads {
		result.Leads.AddFound(&leads[i])
	}
	return result, err
}

// withoutDirectory is the error of a search without data: nil, unless it names an edition of
// other data.
func withoutDirectory(ctx context.Context, s resolution.KeywordSearch) error {
	if s.Edition != "" && s.Edition != noDirectory {
		return resolution.ErrNoEdition
	}
	return ctx.Err()
}

// unsearchable returns the error of the directory, or that of a caller who gave up.
func unsearchable(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, resolution.ErrNoEdition) || errors.Is(err, resolution.ErrUnavailable) {
		return cmp.Or(ctx.Err(), err)
	}
	return unreadable(ctx, err)
}

// foundLead makes the lead for a page. companies has those that were found before.
func (e *Engine) foundLead(ctx context.Context, f searches.Found, p resolution.SearchPage, companies map[string]*resolution.Company) (resolution.FoundLead, error) {
	who, err := e.searcher(ctx, f)
	if err != nil {
		return resolution.FoundLead{}, err
	}
	hashes, err := who.hashedEmails()
	if err != nil {
		return resolution.FoundLead{}, err
	}
	lead := resolution.FoundLead{LeadID: f.LeadID, LeadType: f.LeadType, SearchedAt: f.SearchedAt,
		MatchedKeywords: append([]string{}, f.MatchedKeywords...)}
	lead.HashedEmails = hashes[:min(len(hashes), p.HEMs)]
	lead.JobTitle = f.JobTitle
	address, lives := place(f.Address, who.person)
	lead.Address = address
	if person := who.person; person != nil {
		lead.JobTitle = cmp.Or(f.JobTitle, person.JobTitle)
		lead.Seniority, lead.Department = person.Seniority, person.Department
		if p.SuperEnrichment {
			if lead.Company, err = e.company(ctx, person.CompanyDomain, companies); err != nil {
				return lead, err
			}
		}
	}
	if p.Deanonymize {
		who.name(&lead.Lead, lives, p.SuperEnrichment)
	}
	return lead, nil
}

// searcher is the person who made a search.
type searcher struct {
	found  searches.Found
	person *people.Person // nil if unknown
	// emails are the distinct keys of all addresses: first that of the search, then
	// those of the person.
	emails []string
}

// searcher finds the person of a search by profile key, or else by email.
func (e *Engine) searcher(ctx context.Context, f searches.Found) (who searcher, err error) {
	who = searcher{found: f}
	own := f.EmailKey
	if f.NetworkURL != "" {
		if who.person, err = e.person(ctx, f.NetworkURL); err != nil {
			return who, err
		}
	}
	if who.person == nil && f.EmailKey != "" {
		var of string
		if who.person, of, err = e.directory.PersonByEmail(ctx, f.EmailKey); err != nil {
			return who, unreadable(ctx, err)
		}
		// A digest has the hashes of its address in the directory.
		if who.person != nil && !strings.Contains(own, "@") {
			own = of
		}
	}
	if own != "" {
		who.emails = append(who.emails, own)
	}
	if who.person != nil {
		for _, key := range who.person.EmailKeys {
			if key != own {
				who.emails = append(who.emails, key)
			}
		}
	}
	return who, nil
}

// hashedEmails returns the distinct hashes of all addresses.
func (s searcher) hashedEmails() ([]resolution.HashedEmail, error) {
	var all []resolution.HashedEmail
	for _, key := range s.emails {
		hashes, err := hashedEmails(key)
		if err != nil {
			return nil, err
		}
		for _, h := range hashes {
			if !slices.Contains(all, h) {
				all = append(all, h)
			}
		}
	}
	return all, nil
}

// place returns where a search was made from, completed by the address of the person if that
// is the same place: then lives is true. If the search has no place, it is the address of
// the person. It never has a street.
func place(search resolution.Address, person *people.Person) (a resolution.Address, lives bool) {
	if person == nil {
		return search, false
	}
	home := person.Address
	same := func(a, b string) bool { return a == "" || b == "" || strings.EqualFold(a, b) }
	if !same(search.City, home.City) || !same(search.State, home.State) || !same(search.ZipCode, home.ZipCode) {
		return search, false
	}
	return resolution.Address{
		City:    cmp.Or(search.City, home.City),
		State:   cmp.Or(search.State, home.State),
		ZipCode: cmp.Or(search.ZipCode, home.ZipCode),
	}, true
}

// name adds the data that identify the lead. lives says that the address of the lead is that
// of the person.
func (s searcher) name(l *resolution.Lead, lives, whole bool) {
	l.NetworkURL = s.found.NetworkURL
	var emails []resolution.ContactEmail
	for _, key := range s.emails {
		if strings.Contains(key, "@") {
			emails = append(emails, resolution.ContactEmail{Email: key})
		}
	}
	if len(emails) > 0 {
		l.Email = emails[0].Email
	}
	if whole {
		l.Emails = emails
	}
	p := s.person
	if p == nil {
		return
	}
	l.NetworkURL = cmp.Or(l.NetworkURL, p.NetworkURL)
	l.FirstName, l.LastName, l.FullName, l.Headline, l.LastSeenAt = p.FirstName, p.LastName, p.FullName, p.Headline, p.LastSeenAt
	if lives {
		l.Address.Street = p.Address.Street
	}
	if len(p.Phones) > 0 {
		l.Phone, l.PhoneRaw = p.Phones[0].Phone, p.PhoneRaw
	}
	if whole {
		l.Phones = p.Phones
	}
}

// company finds a company, or takes it from met.
func (e *Engine) company(ctx context.Context, domain string, met map[string]*resolution.Company) (*resolution.Company, error) {
	if domain == "" {
		return nil, nil
	}
	if c, ok := met[domain]; ok {
		return c, nil
	}
	c, err := e.directory.Company(ctx, domain)
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	if c == nil { // not among the companies: its domain is what we know
		c = &resolution.Company{Domain: domain}
	}
	met[domain] = c
	return c, nil
}
