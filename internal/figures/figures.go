// Package figures formats counts, sizes, rates and times for people, on the
// terminal and in the report page.
package figures

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Grouped formats n with commas: 1,234,567.
func Grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// LargestFirst returns the names of counts, largest count first.
func LargestFirst[N int64 | float64](counts map[string]N) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}

// maxCounts is how many counts one line names.
const maxCounts = 6

// Counts lists counts by name, largest first: empty 2, multiple 1.
func Counts(counts map[string]int64) string {
	names := LargestFirst(counts)
	var more string
	if len(names) > maxCounts+1 {
		more = fmt.Sprintf(" and %d other reasons", len(names)-maxCounts)
		names = names[:maxCounts]
	}
	for i, name := range names {
		names[i] = name + " " + Grouped(counts[name])
	}
	return strings.Join(names, ", ") + more
}

// Plural writes n with its noun, such as "1 row" or "2,000 rows".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "ry"); ok { // entry
		noun = stem + "rie"
	}
	return Grouped(int64(n)) + " " + noun + "s"
}

// Size formats a number of bytes in decimal units: 7.2 kB.
func Size(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit-0.05 && prefix < 4 { // would be printed as 1000.0
		value, prefix = value/unit, prefix+1
	}
	return fmt.Sprintf("%.1f %cB", value, "kMGTP"[prefix])
}

// Share formats n as a percentage of the whole: 12.3%. It is empty when the
// whole is 0.
func Share(n, of int64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

// Digits formats a short time with two or three digits: 51ms, 1.2s.
func Digits(d time.Duration) string {
	for unit := time.Microsecond; unit <= time.Second; unit *= 10 {
		if d < 100*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}

// Decimal formats a rate with at least two digits: 0.25, 9.4, 1,234.
func Decimal(rate float64) string {
	switch {
	case rate >= 9.95:
		return Grouped(int64(math.Round(rate)))
	case rate == 0:
		return "0"
	case rate >= 0.095:
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.2f", rate)
}

// Compact formats a time in its two largest units, such as 9m59s or 2d2h,
// rounded up to a second: a short wait is not 0s.
func Compact(d time.Duration) string {
	s := int64(math.Ceil(max(d, 0).Seconds()))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 600:
		return pair(s, 60, "m", 1, "s")
	case s < 3600:
		return fmt.Sprintf("%dm", (s+30)/60)
	case s < 24*3600:
		return pair(s, 3600, "h", 60, "m")
	}
	return pair(s, 24*3600, "d", 3600, "h")
}

// Plain formats a time exactly, without zero minutes and seconds: 15m, 24h.
func Plain(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// pair formats s seconds in a large and a small unit, given in seconds. It
// leaves out the small unit when that is 0.
func pair(s, large int64, largeName string, small int64, smallName string) string {
	text := fmt.Sprintf("%d%s", s/large, largeName)
	if rest := s % large / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}

// Short formats a count in at most five characters: 9999, 23.5M.
func Short(n int64) string {
	if n < 10_000 {
		return fmt.Sprint(n)
	}
	value, prefix := float64(n)/1000, 0
	for value >= 999.5 && prefix < 3 {
		value, prefix = value/1000, prefix+1
	}
	if value < 99.95 {
		return fmt.Sprintf("%.1f%c", value, "kMGT"[prefix])
	}
	return fmt.Sprintf("%.0f%c", value, "kMGT"[prefix])
}
