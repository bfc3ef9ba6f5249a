package callback

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	lookupTimeout = 2 * time.Second  // a request waits this long
	foundFor      = time.Minute      // an answer is used again for this long
	lostFor       = 10 * time.Second // and a failure, so that not every request waits for a dead name server
	maxNames      = 4096
)

// names remembers the addresses of names for a short time. A caller who gives the
// same address in every request costs one look-up a minute. The zero value is empty.
type names struct {
	mu     sync.Mutex
	known  map[string]known
	flight singleflight.Group // one look-up for all who need a name at the same time
}

// known is the result of a look-up; no addresses if it failed.
type known struct {
	addrs []netip.Addr
	until time.Time
}

// find returns the addresses of a name; none if they are not found in time. It does
// not end early with ctx, because others may wait for the same look-up.
func (n *names) find(ctx context.Context, r *net.Resolver, name string) []netip.Addr {
	if addrs, found := n.remembered(name, time.Now()); found {
		return addrs
	}
	addrs, _, _ := n.flight.Do(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		addrs, err := r.LookupNetIP(ctx, "ip", absolute(name))
		if err != nil {
			addrs = nil
		}
		n.remember(name, addrs, time.Now())
		return addrs, nil
	})
	return addrs.([]netip.Addr)
}

func (n *names) remembered(name string, now time.Time) (addrs []netip.Addr, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, found := n.known[name]
	return k.addrs, found && now.Before(k.until)
}

// remember keeps the result of a look-up. When there is no room, it drops any other
// name, which is then looked up again.
func (n *names) remember(name string, addrs []netip.Addr, now time.Time) {
	until := now.Add(foundFor)
	if len(addrs) == 0 {
		until = now.Add(lostFor)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]known{}
	}
	for other := range n.known {
		if len(n.known) < maxNames {
			break
		}
		delete(n.known, other)
	}
	n.known[name] = known{addrs, until}
}

// absolute returns a name that the system does not try with its search domains,
// which are the operator's own network. A single label means nothing without them,
// and can only lead to addresses of Allow.
func absolute(name string) string {
	if strings.Contains(name, ".") {
		return name + "."
	}
	return name
}
