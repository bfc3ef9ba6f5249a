package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"syscall"

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

// folderError says why a flag's folder cannot be had.
func folderError(flag string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("--%s: %s is a file; name a folder", flag, path.Path)
	}
	return fmt.Errorf("--%s: %w", flag, err)
}

// listenError says why an address of a flag cannot be listened on.
func listenError(flag, address string, err error) error {
	why := err
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = errors.New("the address is in use by another program; name another port, or 0 for any that is free")
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &dns):
		why = errors.New("the address cannot be had: it is none of this machine's")
	case errors.Is(err, syscall.EACCES):
		why = errors.New("the address cannot be had: its port takes rights that this program has not; ports from 1024 on do not")
	}
	return fmt.Errorf("--%s %s: %w", flag, address, why)
}
