package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/leadetl/leadetl/internal/cliflag"
)

// checkResolver refuses a word of --resolver that is neither the engine's nor
// looks like an address.
func checkResolver(word string) error {
	if strings.ContainsAny(word, ":/.") {
		return nil // the client knows what an address is
	}
	if cliflag.Edits(word, embeddedResolver) <= len(embeddedResolver)/2 {
		return fmt.Errorf("--resolver %s: did you mean %s, or an address such as https://leads.example?", word, embeddedResolver)
	}
	return fmt.Errorf("--resolver %s: write %s, or an address such as https://leads.example", word, embeddedResolver)
}

// checkCallbackURL refuses what no service could post to. The error does not
// repeat the address, which may hold a password.
func checkCallbackURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return errors.New("--callback-url is no address that a service could post to; write one such as https://hooks.example/leads")
	case u.User != nil:
		return errors.New("--callback-url holds a user or a password, which the service would be sent; leave it out: callbacks are signed")
	}
	return nil
}
