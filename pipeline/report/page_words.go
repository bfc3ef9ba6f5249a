package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
)

// count formats a number with its noun.
func count(n int64, noun string) string { return plural(n, noun, noun+"s") }

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return figures.Grouped(n) + " " + many
}

// percent formats a share. Only an exact zero is 0%, and only all is 100%.
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

// took formats a duration in seconds.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return figures.Digits(d)
	}
	return figures.Compact(d)
}

// moment formats a time.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// words replaces underscores in a name with spaces.
func words(s string) string { return strings.ReplaceAll(s, "_", " ") }

// tenth rounds to one decimal.
func tenth(f float64) float64 { return math.Round(f*10) / 10 }

// width returns the width of a bar in percent.
func width(n, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return math.Round(1e4*min(n/of, 1)) / 100
}

// rate formats a number per second.
func rate(perSecond float64) string {
	if perSecond >= 1e6 {
		return figures.Short(int64(perSecond))
	}
	return figures.Decimal(perSecond)
}

// clock formats the time since the start of a run: 90s, 5m, 1h30m.
func clock(seconds float64) string {
	if seconds == 0 {
		return "0"
	}
	if seconds < 1 {
		return fmt.Sprintf("%gs", seconds)
	}
	return figures.Compact(time.Duration(seconds * float64(time.Second)))
}
