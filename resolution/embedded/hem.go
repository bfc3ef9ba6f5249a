package embedded

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/transforms/email"
)

// emailToHEM always matches, except for suppressed people: an unknown address has hashes too,
// and an unknown digest is its own only hash.
func (e *Engine) emailToHEM(ctx context.Context, key string) (resolution.Answer, error) {
	hashes, err := hashedEmails(key)
	if err != nil {
		return resolution.Answer{}, err
	}
	lead := &resolution.Lead{HashedEmails: hashes}
	if e.directory == nil {
		return match(lead), nil
	}
	person, of, err := e.directory.PersonByEmail(ctx, key)
	if err != nil {
		return resolution.Answer{}, unreadable(ctx, err)
	}
	if e.hides(person) {
		return noMatch(NotFound), nil
	}
	if person != nil {
		lead.NetworkURL = person.NetworkURL
		// A digest has the hashes of its address in the directory. An address has
		// its own, even if the directory has only a digest of it.
		if !strings.Contains(key, "@") {
			if lead.HashedEmails, err = hashedEmails(of); err != nil {
				return resolution.Answer{}, err
			}
		}
	}
	return match(lead), nil
}

func (e *Engine) networkToHEM(ctx context.Context, key string) (resolution.Answer, error) {
	p, err := e.person(ctx, key)
	if err != nil {
		return resolution.Answer{}, err
	}
	if p == nil {
		return noMatch(NotFound), nil
	}
	if len(p.EmailKeys) == 0 {
		return noMatch(NoEmail), nil
	}
	hashes, err := allHashes(p)
	if err != nil {
		return resolution.Answer{}, err
	}
	return match(&resolution.Lead{HashedEmails: hashes, NetworkURL: p.NetworkURL}), nil
}

func allHashes(p *people.Person) ([]resolution.HashedEmail, error) {
	var all []resolution.HashedEmail
	for _, key := range p.EmailKeys {
		hashes, err := hashedEmails(key)
		if err != nil {
			return nil, err
		}
		all = append(all, hashes...)
	}
	return all, nil
}

// hashedEmails returns md5, sha1 and sha256 of the plain form of an address, or the digest if
// key is one.
func hashedEmails(key string) ([]resolution.HashedEmail, error) {
	a, err := email.Parse([]byte(key))
	if err != nil {
		return nil, fmt.Errorf("%w: the key is not an email: %w", resolution.ErrInvalid, err)
	}
	canonical := a.AppendKey(nil)
	if a.Kind() != email.Plaintext {
		return []resolution.HashedEmail{{Email: string(canonical), Type: a.Kind().String()}}, nil
	}
	d := email.Sum(canonical)
	return []resolution.HashedEmail{
		{Email: hex.EncodeToString(d.MD5[:]), Type: email.MD5.String()},
		{Email: hex.EncodeToString(d.SHA1[:]), Type: email.SHA1.String()},
		{Email: hex.EncodeToString(d.SHA256[:]), Type: email.SHA256.String()},
	}, nil
}
