package answering

import (
	"context"
	"errors"

	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// checkCallback returns the receiver of a callback address that the policy
// allows. An empty address has no receiver.
func (d *Desk) checkCallback(ctx context.Context, address string) (receiver string, err error) {
	if address == "" {
		return "", nil
	}
	receiver, err = d.Callbacks.Check(ctx, address)
	if err != nil {
		return "", callbackRefusal(err)
	}
	return receiver, nil
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
