package callback

// Refusal is why a callback address is not accepted: a word that can be shown
// to who sent it. It never holds the address, so it can be logged as well.
type Refusal string

// The refusals of Policy.Check, for errors.Is.
const (
	ErrInvalidURL     Refusal = "invalid_url"      // not an absolute URL of visible ASCII, its host aside
	ErrTooLong        Refusal = "too_long"         // more than 2,048 bytes
	ErrNotHTTPS       Refusal = "not_https"        // another scheme
	ErrUserInfo       Refusal = "user_info"        // a name or password before the host
	ErrFragment       Refusal = "fragment"         // a part that is never sent
	ErrPort           Refusal = "port_not_allowed" // not 443 or 8443
	ErrBadHost        Refusal = "bad_host"         // not a domain name
	ErrSpecialName    Refusal = "special_name"     // a name that means something else in each network
	ErrOddAddress     Refusal = "odd_address"      // an IP address, not spelled the canonical way
	ErrSpecialAddress Refusal = "special_address"  // an address, literal or behind the name, that is not the public Internet's
)

// Error returns the word, with what it is about before it.
func (r Refusal) Error() string { return "callback address refused: " + string(r) }

// Word returns the word alone.
func (r Refusal) Word() string { return string(r) }
