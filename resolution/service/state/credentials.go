package state

import (
	"net/netip"
	"slices"
	"time"
)

// Organization is one customer of the service.
type Organization struct {
	ID      int64
	Public  string // public id: org_ and 16 hex digits
	Name    string
	Created time.Time

	// TestOf is 0 for a usual organization. Otherwise this organization holds the
	// ledger and the resolutions of the test keys of organization TestOf.
	TestOf    int64
	Suspended time.Time // from when calls are refused; zero if not suspended
}

// Account is an organization with its credits.
type Account struct {
	Organization Organization
	Balance      Balance
}

// Key is the record of an API key. The key itself is not stored.
type Key struct {
	ID           int64
	Public       string // public id: key_ and 16 hex digits
	Organization int64
	Test         bool     // a test key; its Organization has a TestOf
	Label        string   // its purpose, in its owner's words; may be empty
	Hash         [32]byte // HMAC-SHA-256 under the pepper
	Hint         string   // its last characters, to tell keys apart
	Created      time.Time
	Expires      time.Time // zero: never
	Revoked      time.Time // zero: never

	Limit int64 // credits that it may spend in all; 0: any number
	Spent int64 // of them, as of when it was read

	Operations []string       // that it may call; nil for all
	Networks   []netip.Prefix // that it may call from; nil for all

	MakesKeys   bool   // the right to make keys, and to revoke those of others
	Maker       int64  // the key that made it, 0 if an operator did; what it spends counts for its maker too
	MakerPublic string // public id of Maker
}

// Narrowed reports whether anything limits what the key can be used for.
func (k Key) Narrowed() bool {
	return k.Limit != 0 || !k.Expires.IsZero() || len(k.Operations) > 0 || len(k.Networks) > 0
}

// Valid reports whether the key is accepted at a time.
func (k Key) Valid(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// KeyChoice selects keys of an organization and its test keys.
type KeyChoice struct {
	Organization int64
	Test         bool   // only test keys
	Search       string // part of the label or of the id, or the Hint
	Before       int64  // only keys with a lower ID; 0 for all
	Limit        int    // 0 for any number
}

// May reports whether the key may call an operation.
func (k Key) May(operation string) bool {
	return len(k.Operations) == 0 || slices.Contains(k.Operations, operation)
}

// NetworkTexts are the networks as text.
func (k Key) NetworkTexts() []string {
	var all []string
	for _, n := range k.Networks {
		all = append(all, n.String())
	}
	return all
}

// From reports whether the key may be used at an address.
func (k Key) From(a netip.Addr) bool {
	return len(k.Networks) == 0 || slices.ContainsFunc(k.Networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Secret is a callback secret of an organization, encrypted under the pepper.
type Secret struct {
	ID, Organization int64
	Sealed           []byte
	Created          time.Time
	Expires          time.Time // zero for the current one
}

// Credentials is everything that a service needs to identify callers, as of one
// moment. It includes expired and revoked keys and expired secrets: the service
// compares their times with the clock at each call.
type Credentials struct {
	Version       int64
	Organizations []Organization // by ID
	Keys          []Key          // by ID
	Secrets       []Secret       // by organization, the current one first
}
