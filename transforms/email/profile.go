package email

import (
	"fmt"

	"github.com/leadetl/leadetl/internal/suggest"
)

// Profile is how an address is changed before it is hashed. An address has several
// HEMs, so a hash without its profile means nothing.
type Profile uint8

// The profiles, and who uses them.
const (
	// Plain is lower case by the simple Unicode mapping: Meta, Snap, TikTok,
	// Criteo, X, LiveRamp, California DROP and most others. It is the key of an
	// address.
	Plain Profile = iota
	// UID2 lowers ASCII letters only. At gmail.com it drops the dots of the local
	// part and everything from its first plus sign: UID2, EUID, The Trade Desk.
	// Source: unifiedid.com, normalization and encoding.
	UID2
	// Google is Plain, and at gmail.com and googlemail.com drops the dots of the local
	// part and everything from its first plus sign: Google Ads, DV360.
	// Source: Google Data Manager, user data formatting, as of 2026-08.
	Google
	// GoogleUntil202608 is what Google was before that: plus tags stayed. Nothing is
	// hashed by it any more, but older lists have its digests.
	GoogleUntil202608
)

var profileNames = [...]string{Plain: "plain", UID2: "uid2", Google: "google"}

// Known are all profiles by which somebody may have hashed an address. Plain is the
// first.
var Known = []Profile{Plain, UID2, Google, GoogleUntil202608}

// ParseProfile returns the profile with a name: plain, uid2 or google.
func ParseProfile(s string) (Profile, error) {
	for p, name := range profileNames {
		if name == s {
			return Profile(p), nil
		}
	}
	return 0, fmt.Errorf("unknown email profile %q%s", s, suggest.OneOf(s, []string{"plain", "uid2", "google"}))
}

// String returns the name for ParseProfile.
func (p Profile) String() string {
	switch {
	case p == GoogleUntil202608:
		return "google until 2026-08"
	case int(p) < len(profileNames):
		return profileNames[p]
	}
	return fmt.Sprintf("Profile(%d)", uint8(p))
}
