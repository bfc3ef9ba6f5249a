package company

import (
	"math"
	"strings"
)

// Range has the bounds of a text range, both inclusive.
type Range struct {
	Min, Max       int64 // people, or whole US dollars; 0 when absent
	HasMin, HasMax bool  // 10,001+ has no Max, <50 no Min
	// Spreadsheet says that the text is a date, such as Nov-50, which spreadsheets
	// make of 11-50. Then there are no bounds.
	Spreadsheet bool
}

// ParseRange reads an employee count or a revenue: 11-50, 10,001+,
// SIZE_51_TO_200, $1-10M, under $500,000, 1.5bn. An amount without a currency is in US
// dollars, and one in another currency (€1M, HK$5M, 5M CHF) has no bounds. Under and
// over are strict (under 50 ends at 49), an exact number is both bounds, and about
// is ignored. Text that is reversed (50-11), ambiguous (1.000), does not fit an int64
// or has unknown words has no bounds.
//
// A unit of the upper bound alone counts for the lower bound too ($1-10M), unless
// that would reverse the range (251-1K).
func ParseRange(text string) Range {
	var buf [maxRangeText]byte
	normal, ok := normalize(buf[:0], text)
	if !ok {
		return Range{}
	}
	if isDate(normal) {
		return Range{Spreadsheet: true}
	}
	s := scanner{text: normal}
	r, ok := s.scanRange()
	if !ok || r.HasMin && r.HasMax && r.Min > r.Max {
		return Range{}
	}
	return r
}

// scanRange reads the whole text.
//
//	range = "self employed" | "myself only"
//	      | ("<" | "≤" | ">" | "≥" | their words) number
//	      | number ["+" | "or more" | "or less" | ("-" | "to") number]
func (s *scanner) scanRange() (r Range, ok bool) {
	if !digit(s.next()) && s.anyOf("self-employed", "self employed", "myself only") {
		return Range{Min: 1, Max: 1, HasMin: true, HasMax: true}, s.end()
	}
	s.anyOf("size ")
	s.noise()
	switch {
	case digit(s.next()): // read below
	case s.anyOf("<=", "up to", "at most", "no more than", "not more than", "maximum", "max"):
		return s.scanMax(0)
	case s.anyOf("<", "under", "below", "less than", "fewer than"):
		return s.scanMax(-1)
	case s.anyOf(">=", "at least", "no less than", "not less than", "minimum", "min"):
		return s.scanMin(0)
	case s.anyOf(">", "over", "above", "more than", "greater than"):
		return s.scanMin(1)
	}

	lower, ok := s.number()
	if !ok {
		return Range{}, false
	}
	s.noise()
	switch {
	case s.anyOf("+", "plus", "or more", "and more", "or above", "and above", "or over", "and over", "and up", "or greater"):
		v, ok := lower.value(lower.unit)
		return Range{Min: v, HasMin: true}, ok && s.end()
	case s.anyOf("or less", "or fewer", "and less", "and fewer", "or below", "and below", "or under", "and under"):
		v, ok := lower.value(lower.unit)
		return Range{Max: v, HasMax: true}, ok && s.end()
	case s.anyOf("-", "to"):
		s.noise()
		upper, ok := s.number()
		if !ok || !s.end() {
			return Range{}, false
		}
		return between(lower, upper)
	}
	v, ok := lower.value(lower.unit)
	return Range{Min: v, Max: v, HasMin: true, HasMax: true}, ok && s.end()
}

// scanMax reads the number after a sign or word for "less". shift is -1 if the number
// itself is excluded.
func (s *scanner) scanMax(shift int64) (Range, bool) {
	s.noise()
	n, ok := s.number()
	if !ok || !s.end() {
		return Range{}, false
	}
	v, ok := n.value(n.unit)
	v += shift
	return Range{Max: v, HasMax: true}, ok && v >= 0
}

// scanMin reads the number after a sign or word for "more".
func (s *scanner) scanMin(shift int64) (Range, bool) {
	s.noise()
	n, ok := s.number()
	if !ok || !s.end() {
		return Range{}, false
	}
	v, ok := n.value(n.unit)
	if !ok || v > math.MaxInt64-shift {
		return Range{}, false
	}
	return Range{Min: v + shift, HasMin: true}, true
}

func between(lower, upper number) (Range, bool) {
	high, ok := upper.value(upper.unit)
	if !ok {
		return Range{}, false
	}
	low, ok := lower.value(lower.unit)
	if lower.unit == 0 && upper.unit != 0 {
		if shared, fits := lower.value(upper.unit); fits && shared < high {
			low, ok = shared, true
		}
	}
	return Range{Min: low, Max: high, HasMin: true, HasMax: true}, ok
}

// Ranges parses ranges, and remembers some of those seen: few texts are ever seen. The zero value is
// ready. One goroutine uses it.
type Ranges struct{ seen map[string]Range }

const maxSeen = 1 << 12

// Parse is ParseRange.
func (s *Ranges) Parse(text string) Range {
	if text == "" {
		return Range{}
	}
	r, known := s.seen[text]
	if !known {
		if s.seen == nil || len(s.seen) == maxSeen {
			s.seen = map[string]Range{}
		}
		r = ParseRange(text)
		s.seen[strings.Clone(text)] = r
	}
	return r
}
