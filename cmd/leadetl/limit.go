package main

import (
	"fmt"
	"strconv"
	"strings"
)

// rejectLimit is the value of --max-rejects: a count, or a share of all
// lines. The zero value is no limit.
type rejectLimit struct {
	text  string
	count int64
	share float64 // 0 to 1; used when text ends in %
}

func (l *rejectLimit) String() string { return l.text }
func (l *rejectLimit) Type() string   { return "count|share%" }

func (l *rejectLimit) Set(s string) (err error) {
	if percent, isShare := strings.CutSuffix(s, "%"); isShare {
		l.share, err = strconv.ParseFloat(percent, 64)
		l.share /= 100
		if err != nil || !(l.share >= 0 && l.share <= 1) {
			return fmt.Errorf("%q is no share; write 0%% to 100%%", s)
		}
	} else if l.count, err = strconv.ParseInt(s, 10, 64); err != nil || l.count < 0 {
		return fmt.Errorf("%q is no limit; write a count such as 100, or a share such as 1%%", s)
	}
	l.text = s
	return nil
}

// passed reports whether rejects of lines are more than the limit allows.
func (l *rejectLimit) passed(rejects, lines int64) bool {
	switch {
	case l.text == "":
		return false
	case strings.HasSuffix(l.text, "%"):
		return float64(rejects) > l.share*float64(lines)
	}
	return rejects > l.count
}
