package main

import (
	"errors"
	"strconv"
	"strings"
)

// percentage is a flag's value such as 1%.
type percentage struct {
	text string
	of1  float64 // 0 to 1
}

func (p *percentage) String() string { return p.text }
func (p *percentage) Type() string   { return "share" }

func (p *percentage) Set(text string) error {
	number, isShare := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !isShare || !(n >= 0 && n <= 100) {
		return errors.New("write a share from 0% to 100%")
	}
	p.text, p.of1 = text, n/100
	return nil
}

// rejectLimit is the value of --max-rejects: a count, or a share of all
// lines. The zero value is no limit.
type rejectLimit struct {
	text  string
	count int64
	share percentage // used when text ends in %
}

func (l *rejectLimit) String() string { return l.text }
func (l *rejectLimit) Type() string   { return "limit" }

func (l *rejectLimit) Set(text string) (err error) {
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

// passed reports whether rejects of lines are more than the limit allows.
func (l *rejectLimit) passed(rejects, lines int64) bool {
	switch {
	case l.text == "":
		return false
	case l.share.text == l.text:
		return float64(rejects) > l.share.of1*float64(lines)
	}
	return rejects > l.count
}
