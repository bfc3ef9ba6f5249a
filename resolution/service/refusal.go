package service

import (
	"errors"

	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// refusals say what is wrong with a callback address, without it.
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

// callbackRefusal is the answer to an address that the policy refused. The
// word for it comes as the code of its field.
func callbackRefusal(err error) error {
	why, is := errors.AsType[callback.Refusal](err)
	if !is {
		return err
	}
	p := wire.Refuse(wire.CallbackNotAllowed, "The callback_url cannot be called: %s.", refusals[why])
	p.Cause = err
	return p
}
