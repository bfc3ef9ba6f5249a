package resolutiontest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// Companies is a table of companies that keeps copies of them.
type Companies struct {
	mu  sync.Mutex
	all []*resolution.Company
}

// Add is that of resolution.CompanyTable.
func (l *Companies) Add(c *resolution.Company) int32 {
	encoded, err := json.Marshal(c)
	kept := &resolution.Company{}
	if err := errors.Join(err, json.Unmarshal(encoded, kept)); err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, kept)
	return int32(len(l.all))
}

// AddShared is that of resolution.CompanyTable.
func (l *Companies) AddShared(c *resolution.Company) int32 { return l.Add(c) }

// Of returns the company with a code, nil for 0.
func (l *Companies) Of(code int32) *resolution.Company {
	l.mu.Lock()
	defer l.mu.Unlock()
	if code == 0 {
		return nil
	}
	return l.all[code-1]
}

// Answers returns empty answers with a table of companies.
func Answers(leads ...*resolution.Lead) *resolution.Answers {
	a := &resolution.Answers{Companies: resolution.CompanyCodes{Table: &Companies{}}}
	for _, l := range leads {
		a.AddLead(l)
	}
	return a
}

// Questions are keys of an operation.
func Questions(op resolution.Operation, keys ...string) (q resolution.Questions) {
	for _, key := range keys {
		q.Keys.Add([]byte(key))
		addr, _ := netip.ParseAddr(key)
		q.Addrs = append(q.Addrs, addr)
	}
	if op.Identifier() != resolution.IP {
		q.Addrs = nil
	}
	return q
}

// Ask answers all keys with a batch.
func Ask(ctx context.Context, b resolution.Batch, op resolution.Operation, keys ...string) (*resolution.Answers, error) {
	a := Answers()
	_, err := b.Resolve(ctx, Questions(op, keys...), math.MaxInt, a)
	return a, err
}

// Lead returns an answer as a lead; nil without a match. Its company is that of Companies.
func Lead(a *resolution.Answers, i int) *resolution.Lead {
	if !a.Matched[i] {
		return nil
	}
	text := func(f resolution.Field) string { return string(a.Texts[f].At(i)) }
	l := &resolution.Lead{
		NetworkURL: text(resolution.FieldNetworkURL), Phone: text(resolution.FieldPhone), PhoneRaw: text(resolution.FieldPhoneRaw), MatchLevel: text(resolution.FieldMatchLevel),
		Contact: resolution.Contact{
			FirstName: text(resolution.FieldFirstName), LastName: text(resolution.FieldLastName), FullName: text(resolution.FieldFullName),
			Headline: text(resolution.FieldHeadline), JobTitle: text(resolution.FieldJobTitle), Seniority: text(resolution.FieldSeniority),
			Department: text(resolution.FieldDepartment), Email: text(resolution.FieldEmail),
			Address: resolution.Address{Street: text(resolution.FieldStreet), ZipCode: text(resolution.FieldZipCode), City: text(resolution.FieldCity), State: text(resolution.FieldState)},
		},
	}
	typed := func(list *resolution.TypedTexts, each func(text, kind string)) {
		for n, to := list.Of(i); n < to; n++ {
			each(string(list.Texts.At(n)), string(list.Types.At(n)))
		}
	}
	typed(&a.Emails, func(text, kind string) { l.Emails = append(l.Emails, resolution.ContactEmail{Email: text, Type: kind}) })
	typed(&a.Phones, func(text, kind string) { l.Phones = append(l.Phones, resolution.ContactPhone{Phone: text, Type: kind}) })
	typed(&a.Hashes, func(text, kind string) {
		l.HashedEmails = append(l.HashedEmails, resolution.HashedEmail{Email: text, Type: kind})
	})
	if i < len(a.LastSeen) && a.LastSeen[i] != resolution.NotSeen {
		at := time.UnixMicro(a.LastSeen[i]).UTC()
		l.LastSeenAt = &at
	}
	if i < len(a.Confidences) && !math.IsNaN(a.Confidences[i]) {
		l.Confidence = &a.Confidences[i]
	}
	if table, is := a.Companies.Table.(*Companies); is && i < len(a.Companies.Codes) {
		l.Company = table.Of(a.Companies.Codes[i])
	}
	return l
}

// Singly answers batches with one request for each distinct key.
type Singly struct{ resolution.Resolver }

// NewBatch is that of resolution.BatchResolver.
func (s Singly) NewBatch(op resolution.Operation) resolution.Batch { return single{s.Resolver, op} }

type single struct {
	resolver  resolution.Resolver
	operation resolution.Operation
}

func (s single) Resolve(ctx context.Context, of resolution.Questions, _ int, to *resolution.Answers) (n int, err error) {
	to.Reset()
	known := map[string]resolution.Answer{}
	for ; n < of.Keys.Len(); n++ {
		key := string(of.Keys.At(n))
		if key == "" {
			to.AddMiss("")
			continue
		}
		answer, again := known[key]
		if !again {
			if answer, err = s.resolver.Resolve(ctx, resolution.Request{Operation: s.operation, Key: key}); err != nil {
				return 0, err
			}
			known[key] = answer
		}
		to.AddLead(answer.Lead)
		to.Reasons[n] = answer.Reason
		to.OrgTypes = append(to.OrgTypes, answer.OrgType)
	}
	return n, nil
}
