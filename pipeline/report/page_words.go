package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
)

// count writes a number of things.
func count(n int64, noun string) string { return plural(n, noun, noun+"s") }

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return figures.Grouped(n) + " " + many
}

// percent is a share in words: what is there is never 0%, and what is not all
// never 100%.
func percent(n, of int64) string {
	switch {
	case of == 0:
		return ""
	case n > 0 && n*2000 < of:
		return "<0.1%"
	case n < of && (of-n)*2000 < of:
		return ">99.9%"
	}
	return figures.Share(n, of)
}

// took is a time of seconds in words.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return figures.Digits(d)
	}
	return figures.Compact(d)
}

// moment is a time as it is shown.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// words is a name of the report's as people read it.
func words(s string) string { return strings.ReplaceAll(s, "_", " ") }

// mostFirst are the names of counts, the largest first.
func mostFirst[N int64 | float64](counts map[string]N) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// tenth rounds to one digit.
func tenth(f float64) float64 { return math.Round(f*10) / 10 }

// width is a share of a whole as the width of a bar, in percent.
func width(n, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return math.Round(1e4*min(n/of, 1)) / 100
}

// rate is a number of things a second.
func rate(perSecond float64) string {
	if perSecond >= 1e6 {
		return figures.Short(int64(perSecond))
	}
	return figures.Decimal(perSecond)
}

// clock is a time since the start of a run: 90s, 5m, 1h30m.
func clock(seconds float64) string {
	if seconds == 0 {
		return "0"
	}
	if seconds < 1 {
		return fmt.Sprintf("%gs", seconds)
	}
	return figures.Compact(time.Duration(seconds * float64(time.Second)))
}
