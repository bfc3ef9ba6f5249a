// Package limit bounds how often a key (an organization, an address) may do
// something, with token buckets, and sets the rate limit headers of answers.
//
// The one thing to know before using it: the current time is a parameter, and a
// bucket never goes back in time. A bucket begins full, with Burst tokens. Each
// Take that is allowed takes one. Tokens come back evenly, Events of them in
// Per. A bucket that is full again is forgotten; a new one equals it.
package limit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// maxEvents bounds Events. A higher rate would not limit anything.
	maxEvents = 1_000_000

	// maxWindows bounds Burst: an empty bucket is full again after at most this
	// many windows.
	maxWindows = 1000
)

// Rate is a limit of Events in the time Per, with up to Burst events at once. The
// zero value is None.
type Rate struct {
	Events int
	Per    time.Duration // a second, a minute, an hour or a day
	Burst  int
}

// None is no limit.
var None = Rate{}

// unit is the time unit of a rate.
type unit struct {
	name string
	per  time.Duration
}

var units = []unit{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

// ParseRate reads what String writes: 600/min, 10/s, 1000/h, 5000/d, with or
// without a burst as in "600/min burst 20"; "0" is None. Without a burst, the
// events of a whole window may come at once.
func ParseRate(s string) (Rate, error) {
	r, err := parse(s)
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return None, fmt.Errorf("%w; write it as 600/min or 600/min burst 20, or 0 for none", err)
	}
	return r, nil
}

func parse(s string) (r Rate, err error) {
	fields := strings.Fields(s)
	switch {
	case len(fields) == 1 && fields[0] == "0":
		return None, nil
	case len(fields) != 1 && (len(fields) != 3 || fields[1] != "burst"):
		return None, errors.New("neither a rate nor a rate with a burst")
	}
	number, window, _ := strings.Cut(fields[0], "/")
	for _, u := range units {
		if u.name == window {
			r.Per = u.per
		}
	}
	if r.Per == 0 {
		return None, errors.New("a rate needs a unit, such as 10/s")
	}
	if r.Events, err = strconv.Atoi(number); err != nil {
		return None, errors.New("the number before the unit is not a whole number")
	}
	r.Burst = r.Events
	if len(fields) == 3 {
		if r.Burst, err = strconv.Atoi(fields[2]); err != nil {
			return None, errors.New("the burst is not a whole number")
		}
	}
	return r, nil
}

// Validate returns what is wrong with a rate; New panics on such a rate.
func (r Rate) Validate() error {
	switch {
	case r == None:
		return nil
	case r.Events < 1 || r.Events > maxEvents:
		return fmt.Errorf("the number of events is not between 1 and %d", maxEvents)
	case r.Per < time.Second || r.Per > 24*time.Hour || r.Per%time.Second != 0:
		return errors.New("the window is not whole seconds up to a day")
	case r.Burst < 1 || r.Burst > maxWindows*r.Events:
		return fmt.Errorf("the burst is not between 1 and %d times the number of events", maxWindows)
	}
	return nil
}

// String writes the rate as ParseRate reads it.
func (r Rate) String() string {
	if r == None {
		return "0"
	}
	window := r.Per.String() // a window that ParseRate does not accept
	for _, u := range units {
		if u.per == r.Per {
			window = u.name
		}
	}
	s := fmt.Sprintf("%d/%s", r.Events, window)
	if r.Burst != r.Events {
		s += fmt.Sprintf(" burst %d", r.Burst)
	}
	return s
}

// MarshalText is String, for flags and configuration files.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is ParseRate, for flags and configuration files.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}
