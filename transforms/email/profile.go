package email

// Profile is how an address is changed before it is hashed. The table of transforms/hashed
// has their names, and who uses them.
type Profile uint8

// The profiles.
const (
	// Plain is lower case by the simple Unicode mapping. It is the key of an address.
	Plain Profile = iota
	// UID2 lowers ASCII letters only. At gmail.com it drops the dots of the local
	// part and everything from its first plus sign.
	UID2
	// Google is Plain, and at gmail.com and googlemail.com drops the dots of the local
	// part and everything from its first plus sign.
	Google
	// GoogleUntil202608 is what Google was before that: plus tags stayed. Nothing is
	// hashed by it any more, but older lists have its digests.
	GoogleUntil202608
)

// Known are all profiles by which somebody may have hashed an address. Plain is the
// first.
var Known = []Profile{Plain, UID2, Google, GoogleUntil202608}
