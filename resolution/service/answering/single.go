package answering

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Single answers the six single-record operations. It looks up the identifier,
// and stores the price, the reply and the callback in one transaction before the
// answer is sent.
func (d *Desk) Single(c *admission.Call) (*wire.Reply, error) {
	operation := c.Operation
	asked, problems := d.Requests.Single(operation, c.Body, d.Profiles)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	outcome := rehearsal(c, asked.Key)
	if err := d.rehearse(c.Request.Context(), outcome, d.Costs.of(operation)); err != nil {
		return nil, err
	}
	if c.Key != nil || asked.CallbackURL != "" {
		if err := d.Gate.MayRetain(c); err != nil {
			return nil, err
		}
	}
	receiver, err := d.checkCallback(c.Request.Context(), asked.CallbackURL)
	if err != nil {
		return nil, err
	}
	if err := d.Roster.Afford(c.Request.Context(), c.Caller, d.Costs.of(operation)); err != nil {
		return nil, err
	}
	answer, err := d.resolve(c.Request.Context(), resolution.Request{Operation: operation, Key: asked.Key})
	if err != nil {
		return nil, err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	writeSingle(c, id, asked, answer)
	charge := state.Charge{
		Organization: c.Caller.Account.ID, Key: c.Caller.KeyID(), Resolution: id, Operation: operation,
		Credits: d.Costs.found(operation, answer),
		Reply:   c.Key.Reply(c.Out.Bytes()),
		At:      d.Now(),
	}
	if asked.CallbackURL != "" {
		charge.Callback, err = wire.NewCallback(state.Callback{
			Organization: c.Caller.Account.ID, Resolution: id, Receiver: receiver, URL: asked.CallbackURL, Due: charge.At,
			GivenUp: outcome == deadCallback,
		}, c.Out.Bytes(), operation, state.Completed)
		if err != nil {
			return nil, err
		}
	}
	left, err := d.settle(c, charge)
	if err != nil {
		return nil, err
	}
	d.Metrics.Answered(operation, answer.Matched(), charge.Credits)
	return &wire.Reply{Body: c.Out.Bytes(), Billed: true, Spent: charge.Credits, Remaining: left}, nil
}

func writeSingle(c *admission.Call, id uuid.UUID, asked request.SingleCall, answer resolution.Answer) {
	facts := c.Operation.Facts()
	lead := admission.GetBuffer()
	defer admission.PutBuffer(lead)
	l := narrow(facts.Gives, answer.Lead)
	if len(l.HashedEmails) == 0 && facts.Gives == resolution.GivesHashes {
		lead.WriteString(`{"hashed_emails":[]}`)
	} else {
		wire.WriteJSON(lead, l)
	}
	e := wire.Envelope{
		Success: true, Message: facts.NotFound, Test: c.Caller.Account.IsTest(), Data: answer.Matched(),
		Lead: lead.Bytes(), Payload: asked.Payload,
	}
	if answer.Matched() {
		e.Message = facts.Found
	}
	if facts.Gives == resolution.GivesVisitor && answer.Matched() && answer.Lead.MatchLevel != "person" {
		e.Message = "Company of the visitor identified."
	}
	if facts.Callback != resolution.NoCallback {
		e.Id, e.Status, e.Requested, e.CallbackURL = id, string(state.Completed), c.Began, asked.CallbackURL
	}
	e.Write(c.Out)
}

// SingleResult answers a single-record call again, as long as its reply is kept.
func (d *Desk) SingleResult(c *admission.Call) (*wire.Reply, error) {
	id, _, problems := request.Result(c.Body)
	if len(problems) > 0 {
		return nil, wire.Invalid(problems)
	}
	body, operation, err := d.State.Answer(c.Request.Context(), c.Caller.Account.ID, id, c.Began)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return nil, wire.Refuse(wire.NotKept, "No answer of this resolution_id is kept. Answers are kept if their call had an Idempotency-Key, as long as it counts.")
	case err != nil:
		return nil, err
	}
	c.Operation = operation
	if err := d.Gate.Permit(c); err != nil {
		return nil, err
	}
	left, err := d.Roster.Balance(c.Request.Context(), c.Caller.Account)
	return &wire.Reply{Body: body, Replayed: true, Billed: true, Remaining: left}, err
}

// resolve asks the Resolver, with a time limit.
func (d *Desk) resolve(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.ResolveTimeout)
	defer cancel()
	answer, err := d.single.Resolve(ctx, r)
	if err != nil {
		return resolution.Answer{}, fmt.Errorf("resolve: %w", err)
	}
	return answer, nil
}

// settle stores a charge, unless it is empty, and returns the credits left.
func (d *Desk) settle(c *admission.Call, charge state.Charge) (left int64, err error) {
	if charge.Credits == 0 && charge.Reply == nil && charge.Callback == nil {
		return d.Roster.Balance(c.Request.Context(), c.Caller.Account)
	}
	left, err = d.State.Settle(c.Request.Context(), charge)
	if too, is := errors.AsType[*state.InsufficientError](err); is {
		return 0, insufficient(c, too)
	}
	if err != nil {
		return 0, err
	}
	c.Caller.Account.Available.Store(left)
	if charge.Reply != nil {
		c.Caller.Account.Retained.Add(int64(len(charge.Reply.Body)), c.Began)
	}
	if charge.Callback != nil {
		c.Caller.Account.Retained.Add(int64(len(charge.Callback.Body)), c.Began)
		d.Posted()
	}
	return left, nil
}

func insufficient(c *admission.Call, too *state.InsufficientError) error {
	if !too.OfKey {
		c.Caller.Account.Available.Store(too.Balance)
	}
	return wire.Insufficient(too)
}

// narrow returns a lead with only the members that the operation is asked for,
// whatever the Resolver filled in.
func narrow(gives resolution.Gives, l *resolution.Lead) *resolution.Lead {
	switch {
	case l == nil:
		return &resolution.Lead{}
	case gives == resolution.GivesHashes:
		return &resolution.Lead{HashedEmails: l.HashedEmails, NetworkURL: l.NetworkURL}
	case gives == resolution.GivesPhone:
		return &resolution.Lead{Phone: l.Phone}
	case gives == resolution.GivesCompany:
		return &resolution.Lead{Company: l.Company}
	}
	return l
}
