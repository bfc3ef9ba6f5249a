package cliflag

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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

// Allowance is a number of credits in some days, written as 30d=50000. The zero value means
// not given.
type Allowance struct {
	Days    int
	Credits int64
}

func (a Allowance) String() string {
	if a.Days == 0 {
		return ""
	}
	return fmt.Sprintf("%dd=%d", a.Days, a.Credits)
}

// Type is the word for the value in help texts.
func (a Allowance) Type() string { return "days=number" }

// maxDays bounds the days of an Allowance: ten years.
const maxDays = 3660

// Set reads the allowance.
func (a *Allowance) Set(text string) error {
	before, after, _ := strings.Cut(text, "=")
	number, inDays := strings.CutSuffix(before, "d")
	days, err := strconv.ParseUint(number, 10, 16)
	credits, err2 := strconv.ParseUint(after, 10, 62)
	if err != nil || err2 != nil || !inDays || days < 1 || days > maxDays {
		return fmt.Errorf("write days and credits, such as 30d=50000, with 1d to %dd", maxDays)
	}
	*a = Allowance{int(days), int64(credits)}
	return nil
}
