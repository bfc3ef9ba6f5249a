package state

import "time"

// Organization is one customer of the service.
type Organization struct {
	ID      int64
	Public  string // org_ and 16 hex digits: its name to the outside
	Name    string
	Created time.Time
}

// Account is an organization with its credits.
type Account struct {
	Organization Organization
	Balance      Balance
}

// Key is the record of an API key. The key itself is not stored.
type Key struct {
	ID           int64
	Public       string // key_ and 16 hex digits: its name to the outside
	Organization int64
	Label        string   // its purpose, in its owner's words; may be empty
	Hash         [32]byte // HMAC-SHA-256 under the pepper
	Hint         string   // its last characters, to tell keys apart
	Created      time.Time
	Expires      time.Time // zero: never
	Revoked      time.Time // zero: never
}

// Secret is a callback secret of an organization, encrypted under the pepper.
type Secret struct {
	ID, Organization int64
	Sealed           []byte
	Created          time.Time
	Expires          time.Time // zero for the current one
}

// Credentials is everything by which a service identifies callers, as of one
// moment. It includes expired keys and secrets and revoked keys: whoever checks
// a caller knows the time.
type Credentials struct {
	Version       int64
	Organizations []Organization // by ID
	Keys          []Key          // by ID
	Secrets       []Secret       // by organization, the current one first
}
