package service

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// checkCallback returns the receiver of a callback address that the policy
// allows. An empty address has no receiver.
func (s *Service) checkCallback(ctx context.Context, address string) (receiver string, err error) {
	if address == "" {
		return "", nil
	}
	receiver, err = s.options.Callbacks.Check(ctx, address)
	if err != nil {
		return "", callbackRefusal(err)
	}
	return receiver, nil
}

// newCallback completes a callback with its id and its body: the finished
// envelope and the kind of the event.
func newCallback(c state.Callback, finished []byte, what state.Status) (*state.Callback, error) {
	id, err := wire.WebhookID()
	if err != nil {
		return nil, err
	}
	c.WebhookID, c.Body = id, wire.Event(finished, "resolution."+string(what), c.Due)
	return &c, nil
}

// refusals say what is wrong with a callback address, without repeating it.
var refusals = map[callback.Refusal]string{
	callback.ErrInvalidURL:     "it is not an absolute URL",
	callback.ErrTooLong:        "it is too long",
	callback.ErrNotHTTPS:       "it is not https",
	callback.ErrUserInfo:       "it has a user name or password",
	callback.ErrFragment:       "it has a fragment",
	callback.ErrPort:           "its port is not 443 or 8443",
	callback.ErrBadHost:        "its host is not a domain name",
	callback.ErrSpecialName:    "its host is a name of private networks",
	callback.ErrOddAddress:     "its IP address is not written in the usual form",
	callback.ErrSpecialAddress: "it does not lead to the public Internet",
}

// callbackRefusal is the answer to an address that the policy refused.
func callbackRefusal(err error) error {
	why, is := errors.AsType[callback.Refusal](err)
	if !is {
		return err
	}
	p := wire.Refuse(wire.CallbackNotAllowed, "The callback_url cannot be called: %s.", refusals[why])
	p.Cause = err
	return p
}

// finishedCallback returns the callback of a finished job, nil when none was
// requested. It echoes the request, so that the receiver can recognize it.
func (s *Service) finishedCallback(job *state.Job, at time.Time) (*state.Callback, error) {
	if job.CallbackURL == "" {
		return nil, nil
	}
	e := finished(job)
	e.Test = s.rosters.isTest(job)
	e.CallbackURL, e.Payload = job.CallbackURL, job.Payload
	var b bytes.Buffer
	e.Write(&b)
	return newCallback(state.Callback{
		Organization: job.Organization, Resolution: job.ID, Receiver: job.Receiver, URL: job.CallbackURL, Due: at,
	}, b.Bytes(), job.Status)
}
