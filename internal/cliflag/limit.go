package cliflag

import (
	"errors"
	"strconv"
	"strings"
)

// Share is a part of a whole, written as a percentage such as 1%.
type Share struct {
	text    string
	percent float64 // 0 to 100
}

// NewShare is a share with a default.
func NewShare(fraction float64) Share {
	return Share{strconv.FormatFloat(100*fraction, 'f', -1, 64) + "%", 100 * fraction}
}

// Fraction is the share as a number from 0 to 1.
func (s Share) Fraction() float64 { return s.percent / 100 }

func (s *Share) String() string { return s.text }

// Type is the word for the value in help texts.
func (s *Share) Type() string { return "share" }

// Set reads the share.
func (s *Share) Set(text string) error {
	number, isShare := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !isShare || !(n >= 0 && n <= 100) {
		return errors.New("write a share from 0% to 100%")
	}
	s.text, s.percent = text, n
	return nil
}

// Limit is a maximum: a count such as 100, or a share of all such as 1%. The
// zero value is no limit.
type Limit struct {
	text  string
	count int64
	share Share // used when text ends in %
}

// NewLimit is a limit with a count as its default.
func NewLimit(count int64) Limit { return Limit{text: strconv.FormatInt(count, 10), count: count} }

// NewLimitShare is a limit with a share as its default, from 0 to 1.
func NewLimitShare(fraction float64) Limit {
	share := NewShare(fraction)
	return Limit{text: share.text, share: share}
}

// IsSet reports whether there is a limit.
func (l Limit) IsSet() bool { return l.text != "" }

// IsShare reports whether the limit is a share.
func (l Limit) IsShare() bool { return l.IsSet() && l.share.text == l.text }

func (l *Limit) String() string { return l.text }

// Type is the word for the value in help texts.
func (l *Limit) Type() string { return "limit" }

// Set reads the limit.
func (l *Limit) Set(text string) (err error) {
	if strings.HasSuffix(text, "%") {
		err = l.share.Set(text)
	} else if l.count, err = strconv.ParseInt(text, 10, 64); err != nil || l.count < 0 {
		err = errors.New("write a count such as 100, or a share such as 1%")
	}
	if err == nil {
		l.text = text
	}
	return err
}

// Exceeded reports whether n of all are more than the limit allows.
func (l Limit) Exceeded(n, all int64) bool {
	switch {
	case !l.IsSet():
		return false
	case l.IsShare():
		return 100*float64(n) > l.share.percent*float64(all) // exact for whole percents
	}
	return n > l.count
}
