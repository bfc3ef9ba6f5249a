package cliflag

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
)

// Age is a duration that may be written in days, such as 90d or 12h.
type Age time.Duration

// OneDay is 24 hours.
const OneDay = 24 * time.Hour

// maxAge keeps times within the calendar when ages are subtracted from them.
const maxAge = 100 * 365 * OneDay

func (a *Age) String() string {
	d := time.Duration(*a)
	if d == 0 {
		return ""
	}
	if d%OneDay == 0 {
		return strconv.FormatInt(int64(d/OneDay), 10) + "d"
	}
	return d.String()
}

// Type is the word for the value in help texts.
func (a *Age) Type() string { return "time" }

// Set reads the age.
func (a *Age) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var n int64
		n, err = strconv.ParseInt(days, 10, 32)
		d = min(time.Duration(n), maxAge/OneDay+1) * OneDay
	}
	if err != nil || d < 0 || d > maxAge {
		return errors.New("write a time such as 90d or 12h")
	}
	*a = Age(d)
	return nil
}

// Switch is a time that is mostly given as a switch: true is the usual time, and
// false switches it off.
type Switch struct{ usual, length Age }

// NewSwitch is a switch that is off.
func NewSwitch(usual time.Duration) Switch { return Switch{usual: Age(usual)} }

// Length is the time; 0 if the switch is off.
func (s *Switch) Length() time.Duration { return time.Duration(s.length) }

func (s *Switch) String() string {
	if s.length == 0 {
		return "false"
	}
	return figures.Plain(time.Duration(s.length))
}

// Usual is the usual time, as the flag takes it.
func (s *Switch) Usual() string { return figures.Plain(time.Duration(s.usual)) }

// Type is the word for the value in help texts.
func (s *Switch) Type() string { return "time" }

// Set reads the switch or the time.
func (s *Switch) Set(text string) error {
	if on, err := strconv.ParseBool(text); err == nil {
		s.length = 0
		if on {
			s.length = s.usual
		}
		return nil
	}
	var length Age
	if err := length.Set(text); err != nil || length == 0 {
		return errors.New("write true, false, or a time such as 24h or 10m")
	}
	s.length = length
	return nil
}

// Day is a day, written as YYYY-MM-DD. The zero value is no day.
type Day struct{ midnight time.Time }

// Midnight is the beginning of the day in UTC.
func (d Day) Midnight() time.Time { return d.midnight }

func (d *Day) String() string {
	if d.midnight.IsZero() {
		return ""
	}
	return d.midnight.Format(time.DateOnly)
}

// Type is the word for the value in help texts.
func (d *Day) Type() string { return "day" }

// Set reads the day.
func (d *Day) Set(text string) (err error) {
	if d.midnight, err = time.Parse(time.DateOnly, text); err != nil || d.midnight.IsZero() {
		return errors.New("write a day that exists, as YYYY-MM-DD")
	}
	return nil
}
