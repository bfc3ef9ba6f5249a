package cliflag

import (
	"errors"
	"strconv"
)

// Number is an optional whole number of at least 0. The zero value means not
// given.
type Number struct {
	n     int64
	given bool
}

// Or is the number, or fallback when none is given.
func (n Number) Or(fallback int64) int64 {
	if n.given {
		return n.n
	}
	return fallback
}

func (n *Number) String() string {
	if !n.given {
		return ""
	}
	return strconv.FormatInt(n.n, 10)
}

// Type is the word for the value in help texts.
func (n *Number) Type() string { return "number" }

// Set reads the number.
func (n *Number) Set(text string) error {
	parsed, err := strconv.ParseInt(text, 10, 63)
	if err != nil || parsed < 0 {
		return errors.New("write a whole number, 0 or more")
	}
	n.n, n.given = parsed, true
	return nil
}
