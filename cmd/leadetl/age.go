package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// age is a flag's duration that may be written in days, as people count
// longer ones.
type age time.Duration

const aDay = 24 * time.Hour

// maxAge keeps moments within what a calendar knows.
const maxAge = 100 * 365 * aDay

func (a *age) String() string {
	d := time.Duration(*a)
	if d == 0 {
		return ""
	}
	if d%aDay == 0 {
		return strconv.FormatInt(int64(d/aDay), 10) + "d"
	}
	return d.String()
}

func (a *age) Type() string { return "time" }

func (a *age) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var n int64
		n, err = strconv.ParseInt(days, 10, 32)
		d = min(time.Duration(n), maxAge/aDay+1) * aDay
	}
	if err != nil || d < 0 || d > maxAge {
		return errors.New("write a time such as 90d or 12h")
	}
	*a = age(d)
	return nil
}
