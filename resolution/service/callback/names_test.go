package callback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func TestCheckLooksNamesUp(t *testing.T) {
	policy := &Policy{Resolver: resolverOf(zone{
		"public.example.com":   {"8.8.8.8", "2606:4700:4700::1111"},
		"loopback.example.com": {"127.0.0.1"},
		"metadata.example.com": {"169.254.169.254"},
		"azure.example.com":    {"168.63.129.16"},
		"six.example.com":      {"fd00:ec2::254"},
		"nat.example.com":      {"64:ff9b::7f00:1"},
		"mapped.example.com":   {"::ffff:10.0.0.1"},
		"compat.example.com":   {"::7f00:1"},
		"one.example.com":      {"8.8.8.8", "8.8.4.4", "10.0.0.1"},
		"other.example.com":    {"8.8.8.8", "::1"},
		"xn--bcher-kva.com":    {"10.0.0.1"},
	})}
	for _, c := range []struct {
		host string
		want error
	}{
		{"public.example.com", nil},
		{"nowhere.example.com", nil},
		{"loopback.example.com", ErrSpecialAddress},
		{"metadata.example.com", ErrSpecialAddress},
		{"azure.example.com", ErrSpecialAddress},
		{"six.example.com", ErrSpecialAddress},
		{"nat.example.com", ErrSpecialAddress},
		{"mapped.example.com", ErrSpecialAddress},
		{"compat.example.com", ErrSpecialAddress},
		{"one.example.com", ErrSpecialAddress},
		{"other.example.com", ErrSpecialAddress},
		{"b\u00fccher.com", ErrSpecialAddress},
	} {
		if _, err := policy.Check(t.Context(), "https://"+c.host+"/"); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.host, err, c.want)
		}
	}
}

// counted counts the look-ups that a name server sees.
func counted(z zone) (*net.Resolver, *atomic.Int32) {
	var n atomic.Int32
	return resolverTo(func(query []byte) ([]byte, error) {
		var m dnsmessage.Message
		if err := m.Unpack(query); err == nil && m.Questions[0].Type == dnsmessage.TypeA {
			n.Add(1)
		}
		return z.answer(query)
	}), &n
}

func TestNamesAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver, asked := counted(zone{"found.example.com": {"8.8.8.8"}})
		policy := &Policy{Resolver: resolver}
		for _, c := range []struct {
			after time.Duration
			host  string
			asked int32 // in all
		}{
			{0, "found.example.com", 1},
			{59 * time.Second, "found.example.com", 1},
			{time.Second, "found.example.com", 2},
			{0, "lost.example.com", 3},
			{9 * time.Second, "lost.example.com", 3},
			{time.Second, "lost.example.com", 4},
		} {
			time.Sleep(c.after)
			if _, err := policy.Check(t.Context(), "https://"+c.host+"/"); err != nil {
				t.Errorf("%s: %v", c.host, err)
			}
			if got := asked.Load(); got != c.asked {
				t.Errorf("%s after %v more: %d look-ups, want %d", c.host, c.after, got, c.asked)
			}
		}
	})
}

func TestNamesAskedAtOnceAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver, asked := counted(zone{"hooks.example.com": {"8.8.8.8"}})
		policy := &Policy{Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(time.Second)
			return resolver.Dial(ctx, network, address)
		}}}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := policy.Check(t.Context(), "https://hooks.example.com/"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := asked.Load(); got != 1 {
			t.Errorf("%d look-ups, want 1", got)
		}
	})
}

// TestDeadNameServer: the look-up ends in time, and the address is accepted.
func TestDeadNameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := &Policy{Resolver: resolverTo(func([]byte) ([]byte, error) { return nil, errors.New("dead") })}
		began := time.Now()
		if _, err := policy.Check(t.Context(), "https://hooks.example.com/"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > lookupTimeout {
			t.Errorf("took %v, want at most %v", took, lookupTimeout)
		}
		time.Sleep(time.Minute) // the resolver's own tries end by themselves
	})
}

func TestNamesAreBounded(t *testing.T) {
	var n names
	now := time.Unix(1700000000, 0)
	addr := []netip.Addr{netip.MustParseAddr("8.8.8.8")}
	for i := range 3 * maxNames {
		n.remember(fmt.Sprint(i), addr, now)
	}
	if len(n.known) != maxNames {
		t.Errorf("%d names are known, want %d", len(n.known), maxNames)
	}
	for i := range maxNames / 2 { // room is made for the last, always
		n.remember("late", addr, now)
		if _, found := n.remembered("late", now); !found {
			t.Fatalf("the name just found is forgotten, time %d", i)
		}
	}
}

func TestAbsolute(t *testing.T) {
	for name, want := range map[string]string{"hooks.example.com": "hooks.example.com.", "receiver": "receiver"} {
		if got := absolute(name); got != want {
			t.Errorf("absolute(%s) = %s, want %s", name, got, want)
		}
	}
}
