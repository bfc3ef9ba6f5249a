package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// messages say how a single-record operation ended.
var messages = map[resolution.Operation]struct{ match, noMatch string }{
	resolution.EmailToHEM:      {"Email resolved to hashed emails.", "No hashed emails found."},
	resolution.NetworkToHEM:    {"Network profile resolved to hashed emails.", "No hashed emails found."},
	resolution.NetworkToPhone:  {"Network profile resolved to a phone number.", "No phone number found."},
	resolution.IPToCompany:     {"IP address resolved to a company.", "No company found."},
	resolution.Enrichment:      {"Network profile resolved to a contact.", "No contact found."},
	resolution.Deanonymization: {"Visitor identified.", "No visitor or company found."},
}

// single answers the six single-record operations. It looks up the identifier,
// and stores the price, the reply and the callback in one transaction before the
// answer is sent.
func (s *Service) single(c *call) (*wire.Reply, error) {
	operation := c.route.operation
	asked, problems := s.options.Requests.Single(operation, c.object, s.options.Profiles)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	if c.key != nil || asked.CallbackURL != "" {
		if err := s.mayRetain(c); err != nil {
			return nil, err
		}
	}
	receiver, err := s.checkCallback(c.request.Context(), asked.CallbackURL)
	if err != nil {
		return nil, err
	}
	if err := s.afford(c.request.Context(), c.account, s.options.Costs.of(operation)); err != nil {
		return nil, err
	}
	answer, err := s.resolve(c.request.Context(), resolution.Request{Operation: operation, Key: asked.Key})
	if err != nil {
		return nil, err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	writeSingle(c, id, asked, answer)
	charge := state.Charge{
		Organization: c.account.id, Key: c.keyID(), Resolution: id, Operation: operation,
		Credits: s.options.Costs.found(operation, answer),
		Reply:   c.key.reply(c.out.Bytes()),
		At:      s.now(),
	}
	if asked.CallbackURL != "" {
		charge.Callback, err = newCallback(state.Callback{
			Organization: c.account.id, Resolution: id, Receiver: receiver, URL: asked.CallbackURL, Due: charge.At,
		}, c.out.Bytes(), state.Completed)
		if err != nil {
			return nil, err
		}
	}
	left, err := s.settle(c, charge)
	if err != nil {
		return nil, err
	}
	s.metrics.Answered(operation, answer.Matched(), charge.Credits)
	return &wire.Reply{Body: c.out.Bytes(), Billed: true, Spent: charge.Credits, Remaining: left}, nil
}

func writeSingle(c *call, id uuid.UUID, asked request.SingleCall, answer resolution.Answer) {
	operation := c.route.operation
	lead := getBuffer()
	defer putBuffer(lead)
	l := narrow(operation, answer.Lead)
	if len(l.HashedEmails) == 0 && (operation == resolution.EmailToHEM || operation == resolution.NetworkToHEM) {
		lead.WriteString(`{"hashed_emails":[]}`)
	} else {
		wire.WriteLead(lead, l)
	}
	e := wire.Envelope{
		Success: true, Message: messages[operation].noMatch, Test: c.account.isTest(), Data: answer.Matched(),
		Lead: lead.Bytes(), Payload: asked.Payload,
	}
	if answer.Matched() {
		e.Message = messages[operation].match
	}
	if operation == resolution.Deanonymization && answer.Matched() && answer.Lead.MatchLevel != "person" {
		e.Message = "Company of the visitor identified."
	}
	if operation != resolution.IPToCompany {
		e.Id, e.Status, e.Requested, e.CallbackURL = id, string(state.Completed), c.began, asked.CallbackURL
	}
	e.Write(c.out)
}

// resolve asks the Resolver, with a time limit.
func (s *Service) resolve(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.ResolveTimeout)
	defer cancel()
	answer, err := s.options.Resolver.Resolve(ctx, r)
	if err != nil {
		return resolution.Answer{}, fmt.Errorf("resolve: %w", err)
	}
	return answer, nil
}

// settle stores a charge, unless it is empty, and returns the credits left.
func (s *Service) settle(c *call, charge state.Charge) (left int64, err error) {
	if charge.Credits == 0 && charge.Reply == nil && charge.Callback == nil {
		return s.balance(c.request.Context(), c.account)
	}
	left, err = s.state.Settle(c.request.Context(), charge)
	if too, is := errors.AsType[*state.InsufficientError](err); is {
		c.account.available.Store(too.Balance)
		return 0, wire.Insufficient(too.Required, too.Balance)
	}
	if err != nil {
		return 0, err
	}
	c.account.available.Store(left)
	if charge.Reply != nil {
		c.account.retained.Add(int64(len(charge.Reply.Body)), c.began)
	}
	if charge.Callback != nil {
		c.account.retained.Add(int64(len(charge.Callback.Body)), c.began)
		s.sender.Wake()
	}
	return left, nil
}

// narrow returns a lead with only the members that the operation is asked for,
// whatever the Resolver filled in.
func narrow(o resolution.Operation, l *resolution.Lead) *resolution.Lead {
	switch {
	case l == nil:
		return &resolution.Lead{}
	case o == resolution.EmailToHEM, o == resolution.NetworkToHEM:
		return &resolution.Lead{HashedEmails: l.HashedEmails, NetworkURL: l.NetworkURL}
	case o == resolution.NetworkToPhone:
		return &resolution.Lead{Phone: l.Phone}
	case o == resolution.IPToCompany:
		return &resolution.Lead{Company: l.Company}
	}
	return l
}
