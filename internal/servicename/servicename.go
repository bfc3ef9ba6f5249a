// Package servicename compares names of services, which are addresses or words: whether two
// of them may be one service.
package servicename

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/idna"
)

// Alike reports whether two names differ at most in scheme, default port, spelling of this
// machine, case, and slashes or dots at an end, or are otherwise alike and their hosts have an
// address in common. Finding the addresses may take two seconds.
func Alike(ctx context.Context, a, b string) bool {
	return spelledAlike(a, b) || resolveAlike(ctx, a, b)
}

// spelling is what tells services apart whatever the spelling of their addresses.
type spelling struct{ host, port, path string }

func spellingOf(name string) (s spelling, ok bool) {
	if !strings.Contains(name, "://") {
		name = "//" + name
	}
	u, err := url.Parse(name)
	if err != nil || u.Hostname() == "" {
		return s, false
	}
	s = spelling{host: strings.ToLower(strings.TrimRight(u.Hostname(), ".")), port: u.Port(), path: strings.ToLower(path.Clean("/" + u.Path))}
	if ascii, err := idna.Lookup.ToASCII(s.host); err == nil {
		s.host = ascii
	}
	if ip, err := netip.ParseAddr(s.host); err == nil {
		s.host = addressOf(ip)
	}
	if s.host == "localhost.localdomain" || strings.HasSuffix(s.host, ".localhost") {
		s.host = loopback
	}
	if s.port == "80" || s.port == "443" { // one service often has both
		s.port = ""
	}
	return s, true
}

const loopback = "localhost"

// addressOf writes an address in its one form; all of this machine are loopback.
func addressOf(ip netip.Addr) string {
	if ip = ip.Unmap().WithZone(""); ip.IsLoopback() || ip.IsUnspecified() {
		return loopback
	}
	return ip.String()
}

func spelledAlike(a, b string) bool {
	one, isOne := spellingOf(a)
	other, isOther := spellingOf(b)
	return isOne && isOther && one == other
}

// lookUpFor bounds the search for the addresses of two hosts. Without a name server the names
// are told apart by their text.
const lookUpFor = 2 * time.Second

var lookUp = net.DefaultResolver.LookupNetIP

func resolveAlike(ctx context.Context, a, b string) bool {
	one, isOne := spellingOf(a)
	other, isOther := spellingOf(b)
	if !isOne || !isOther || one.port != other.port || one.path != other.path {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpFor)
	defer cancel()
	addresses := map[string]bool{}
	for _, address := range addressesOf(ctx, one.host) {
		addresses[address] = true
	}
	return len(addresses) > 0 && slices.ContainsFunc(addressesOf(ctx, other.host), func(address string) bool { return addresses[address] })
}

func addressesOf(ctx context.Context, host string) (all []string) {
	if _, err := netip.ParseAddr(host); err == nil || host == loopback {
		return []string{host}
	}
	found, err := lookUp(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, ip := range found {
		all = append(all, addressOf(ip))
	}
	return all
}
