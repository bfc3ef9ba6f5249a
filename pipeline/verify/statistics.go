package verify

import (
	"encoding/binary"
	"math"
)

// statistics are what the footer says of the values of a column chunk. Readers leave out
// row groups by them, so a wrong one loses rows.
type statistics struct {
	least, most string // plain bytes of a number; empty without it, and for other types
	nulls       int64  // -1 without it
}

// problem describes how statistics contradict the values of their chunk; "" if they do
// not.
func (s statistics) problem(l *leaf) string {
	const outside = "a value is outside the bounds in the footer"
	if s.nulls >= 0 && l.Repetition == nil && s.nulls != int64(l.Count-l.present()) {
		return "it has another number of nulls than the footer says"
	}
	if len(s.least) != len(s.most) {
		return "the footer has only one bound"
	}
	switch len(s.least) {
	case 0:
	case 4:
		if isOutside(l.Numbers, int64(int32(binary.LittleEndian.Uint32([]byte(s.least)))), int64(int32(binary.LittleEndian.Uint32([]byte(s.most))))) {
			return outside
		}
	case 8:
		least, most := binary.LittleEndian.Uint64([]byte(s.least)), binary.LittleEndian.Uint64([]byte(s.most))
		if isOutside(l.Numbers, int64(least), int64(most)) || isOutside(l.Floats, math.Float64frombits(least), math.Float64frombits(most)) {
			return outside
		}
	default:
		return "the bounds in the footer are no numbers of its type"
	}
	return ""
}

// isOutside reports whether a value is not between two others. NaN does not count.
func isOutside[T int64 | float64](values []T, least, most T) bool {
	for _, v := range values {
		if v < least || v > most {
			return true
		}
	}
	return false
}

// isNumber reports whether a physical type is one whose bounds are compared.
func isNumber(physical string) bool {
	return physical == "INT32" || physical == "INT64" || physical == "DOUBLE"
}
