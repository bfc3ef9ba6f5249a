package cluster

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/secret"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		text string
		want Address
		say  string // part of the error; "" is none
	}{
		{"temporal://localhost:7233/leads", Address{"localhost:7233", "leads"}, ""},
		{"temporal://localhost:7233", Address{"localhost:7233", ""}, ""},
		{"temporal://[::1]:7233/a/", Address{"[::1]:7233", "a"}, ""},
		{"temporal:///leads", Address{"", "leads"}, ""},
		{"temporal://", Address{}, ""},
		{"foo", Address{}, `"foo" is not the address of a Temporal server; write temporal://HOST:PORT/NAMESPACE, such as temporal://localhost:7233/default`},
		{"localhost:7233", Address{}, "temporal://HOST:PORT/NAMESPACE"},
		{"temporal:localhost", Address{}, "temporal://HOST:PORT/NAMESPACE"},
		{"http://localhost:7233/a", Address{}, "temporal://HOST:PORT/NAMESPACE"},
		{"temporal://localhost/a", Address{}, "has no port"},
		{"temporal://:7233/a", Address{}, "has no port"},
		{"temporal://h:7233/a/b", Address{}, "more than one namespace"},
		{"temporal://h:7233/a?tls=1", Address{}, "more than a host"},
		{"temporal://canary@h:7233/a", Address{}, "no credentials"},
	} {
		got, err := ParseAddress(c.text)
		if got != c.want || (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: got %v, %v; want %v, %q", c.text, got, err, c.want, c.say)
		}
		if err != nil && c.say == "no credentials" && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error repeats the credentials: %v", c.text, err)
		}
	}
}

// TestConnectionOptions says which setting wins.
func TestConnectionOptions(t *testing.T) {
	t.Setenv("TEMPORAL_CONFIG_FILE", t.TempDir()+"/none.toml")
	t.Setenv("TEMPORAL_ADDRESS", "env:7233")
	t.Setenv("TEMPORAL_NAMESPACE", "of-env")
	for _, c := range []struct{ given, want Address }{
		{Address{}, Address{"env:7233", "of-env"}},
		{Address{HostPort: "h:1"}, Address{"h:1", "of-env"}},
		{Address{"h:1", "n"}, Address{"h:1", "n"}},
	} {
		o, at, err := Connection{Address: c.given, Log: slog.New(slog.DiscardHandler)}.options()
		if err != nil || at != c.want || o.HostPort != at.HostPort || o.Namespace != at.Namespace {
			t.Errorf("%v: got %v, %v, want %v", c.given, at, err, c.want)
		}
		if o.ConnectionOptions.TLS != nil {
			t.Errorf("%v: TLS without a key", c.given)
		}
	}
	o, _, err := Connection{Key: secret.New("k"), Log: slog.New(slog.DiscardHandler)}.options()
	if err != nil || o.ConnectionOptions.TLS == nil {
		t.Errorf("a key must not leave without TLS: %v", err)
	}
	t.Setenv("TEMPORAL_ADDRESS", "")
	if _, _, err := (Connection{Log: slog.New(slog.DiscardHandler)}).options(); err == nil || !strings.Contains(err.Error(), "no host") {
		t.Errorf("without a host: %v", err)
	}
}

func TestDialNobody(t *testing.T) {
	t.Setenv("TEMPORAL_CONFIG_FILE", t.TempDir()+"/none.toml")
	_, _, err := Dial(t.Context(), Connection{Address: Address{"127.0.0.1:1", "n"}, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Dial(ctx, Connection{Address: Address{"127.0.0.1:1", "n"}, Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a cancelled context connects")
	}
}
