package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
)

// changesFact says in a line what differs from an earlier dataset, and what the run has paid;
// "" if the run did not ask for it.
func changesFact(r *Report) string {
	if r.Changes == nil {
		return ""
	}
	line := r.Changes.String()
	if r.Asked() != nil {
		line += ", " + count(r.Asked().Calls.Credits, "credit")
	}
	return line
}

// previousFact describes the dataset before; "" without one.
func previousFact(p *Previous) string {
	if p == nil {
		return ""
	}
	text := p.CompletedAt.UTC().Format(time.DateOnly) + ": " + count(p.Rows, "row")
	if p.Rows > 0 {
		text += ", " + percent(p.Matched, p.Rows) + " matched"
	}
	if p.Credits != nil {
		text += ", " + count(*p.Credits, "credit")
	}
	return text
}

// perMatch is what a dataset has paid for each row that matched; "" if nothing matched.
func perMatch(credits, matched int64) string {
	if matched == 0 {
		return ""
	}
	return figures.Decimal(float64(credits)/float64(matched)) + " for each match"
}

// What is odd about a run, compared with the dataset before.
const (
	oddMatched = 0.1 // share of the rows, up or down
	oddTimes   = 2.0 // rows, or credits for each match, up or down
	fewRows    = 100 // fewer say nothing
)

// warnOfOdd adds how a run differs from the dataset before, if a person should know of it.
func (o outcome) warnOfOdd(r *Report) outcome {
	p := r.Previous
	if p == nil || r.Stop.Reason != StopFinished || p.Rows < fewRows || r.Totals.Rows < fewRows {
		return o
	}
	t := r.Totals
	var odd []string
	if times := float64(t.Rows) / float64(p.Rows); times >= oddTimes || times <= 1/oddTimes {
		odd = append(odd, fmt.Sprintf("it has %s times as many rows", figures.Decimal(times)))
	}
	now, before := float64(t.Matched)/float64(t.Rows), float64(p.Matched)/float64(p.Rows)
	if math.Abs(now-before) >= oddMatched {
		more := "more"
		if now < before {
			more = "fewer"
		}
		odd = append(odd, fmt.Sprintf("%s of 100 rows %s matched", figures.Decimal(100*math.Abs(now-before)), more))
	}
	if s := r.Asked(); s != nil && p.Credits != nil && *p.Credits > 0 && t.Matched > 0 && p.Matched > 0 {
		paid := float64(s.Calls.EarlierCredits + s.Calls.Credits)
		if times := paid / float64(t.Matched) / (float64(*p.Credits) / float64(p.Matched)); times >= oddTimes {
			odd = append(odd, fmt.Sprintf("a match cost %s times as much", figures.Decimal(times)))
		}
	}
	if len(odd) == 0 {
		return o
	}
	if o.Kind == "good" {
		o.Kind, o.Word = "mixed", "Finished, unlike the run before"
	}
	o.Text = strings.TrimSpace(o.Text + " Compared with " + p.CompletedAt.UTC().Format(time.DateOnly) + ", " + strings.Join(odd, ", ") + ".")
	return o
}
