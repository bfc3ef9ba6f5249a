package parquetfile

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// setForm chooses how values are written: text and binary unchanged, binary of
// a fixed size (digests) in hex, UUIDs with hyphens, numbers in decimal, dates
// and times as ISO 8601, intervals in words. It refuses types without a text
// form.
func (l *leaf) setForm() error {
	switch l.LogicalType.Value.(type) {
	case *format.GeometryType:
		return &unsupportedError{"type GEOMETRY"}
	case *format.GeographyType:
		return &unsupportedError{"type GEOGRAPHY"}
	case *format.NullType:
		l.null = true
	}
	if scale, ok := l.decimal(); ok {
		if scale > maxScale {
			return &unsupportedError{fmt.Sprintf("a DECIMAL of %d decimal places", scale)}
		}
		l.raw, l.text = true, decimals(l.Type.V, scale)
		return nil
	}
	switch l.Type.V {
	case format.Boolean:
		l.raw, l.text = true, func(dst []byte, v value) []byte { return strconv.AppendBool(dst, v.bits != 0) }
	case format.Int32, format.Int64:
		l.integers()
	case format.Int96:
		l.text = func(dst []byte, v value) []byte { return appendInt96(dst, v.bytes) }
	case format.Float:
		l.raw, l.text = true, func(dst []byte, v value) []byte {
			return appendFloat(dst, float64(math.Float32frombits(uint32(v.bits))), 32)
		}
	case format.Double:
		l.raw, l.text = true, func(dst []byte, v value) []byte { return appendFloat(dst, math.Float64frombits(v.bits), 64) }
	case format.ByteArray:
		l.text = func(dst []byte, v value) []byte { return append(dst, v.bytes...) }
	case format.FixedLenByteArray:
		l.fixed()
	default:
		return &unsupportedError{fmt.Sprint("type ", l.Type.V)}
	}
	return nil
}

// decimal returns the scale of a DECIMAL.
func (e *element) decimal() (scale int32, ok bool) {
	if d, ok := e.LogicalType.Value.(*format.DecimalType); ok {
		return d.Scale, true
	}
	return e.Scale.V, e.converted(deprecated.Decimal)
}

func decimals(kind format.Type, scale int32) func(dst []byte, v value) []byte {
	switch kind {
	case format.Int32:
		return func(dst []byte, v value) []byte {
			return appendPoint(dst, strconv.AppendInt(nil, int64(int32(v.bits)), 10), scale)
		}
	case format.Int64:
		return func(dst []byte, v value) []byte {
			return appendPoint(dst, strconv.AppendInt(nil, int64(v.bits), 10), scale)
		}
	}
	return func(dst []byte, v value) []byte { return appendDecimal(dst, v.bytes, scale) }
}

// integers chooses how to write a column of INT32 or INT64.
func (l *leaf) integers() {
	signed := func(v value) int64 { return int64(v.bits) }
	if l.Type.V == format.Int32 {
		signed = func(v value) int64 { return int64(int32(v.bits)) }
	}
	timed := func(layout string, unit format.TimeUnitValue) {
		l.text = func(dst []byte, v value) []byte { return instant(signed(v), unit).AppendFormat(dst, layout) }
	}
	const clock = "15:04:05.999999999"
	switch t := l.LogicalType.Value.(type) {
	case *format.TimestampType:
		layout := localLayout // an instant ends in Z, a local time does not
		if t.IsAdjustedToUTC {
			layout += "Z"
		}
		timed(layout, t.Unit.Value)
		return
	case *format.TimeType:
		timed(clock, t.Unit.Value)
		return
	}
	_, date := l.LogicalType.Value.(*format.DateType)
	switch {
	case date || l.converted(deprecated.Date):
		l.text = func(dst []byte, v value) []byte {
			return time.Unix(signed(v)*secondsPerDay, 0).UTC().AppendFormat(dst, time.DateOnly)
		}
	case l.converted(deprecated.TimestampMillis):
		timed(localLayout, new(format.MilliSeconds))
	case l.converted(deprecated.TimestampMicros):
		timed(localLayout, new(format.MicroSeconds))
	case l.converted(deprecated.TimeMillis):
		timed(clock, new(format.MilliSeconds))
	case l.converted(deprecated.TimeMicros):
		timed(clock, new(format.MicroSeconds))
	case l.unsigned():
		bits := uint64(math.MaxUint64)
		if l.Type.V == format.Int32 {
			bits = math.MaxUint32
		}
		l.raw, l.text = true, func(dst []byte, v value) []byte { return strconv.AppendUint(dst, v.bits&bits, 10) }
	default:
		l.raw, l.text = true, func(dst []byte, v value) []byte { return strconv.AppendInt(dst, signed(v), 10) }
	}
}

func (e *element) unsigned() bool {
	if t, ok := e.LogicalType.Value.(*format.IntType); ok {
		return !t.IsSigned
	}
	return e.ConvertedType.Valid && e.ConvertedType.V >= deprecated.Uint8 && e.ConvertedType.V <= deprecated.Uint64
}

const (
	secondsPerDay = 24 * 60 * 60
	localLayout   = "2006-01-02T15:04:05.999999999"
)

func instant(v int64, unit format.TimeUnitValue) time.Time {
	switch unit.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(v).UTC()
	case *format.MicroSeconds:
		return time.UnixMicro(v).UTC()
	}
	return time.Unix(0, v).UTC()
}

// errInt96 is the error for invalid times, such as Spark writes for years after
// 290,000.
var errInt96 = errors.New("an INT96 has an impossible time of day")

// appendInt96 writes an instant of Impala or Spark: nanoseconds of the day, and
// the Julian day number. Its range exceeds nanoseconds since 1970.
func appendInt96(dst, v []byte) []byte {
	const julian1970 = 2440588
	nanos := int64(binary.LittleEndian.Uint64(v[:8]))
	if nanos < 0 || nanos > int64(24*time.Hour) {
		panic(errInt96) // Reader turns it into an error
	}
	day := int64(int32(binary.LittleEndian.Uint32(v[8:]))) - julian1970
	return time.Unix(day*secondsPerDay, nanos).UTC().AppendFormat(dst, localLayout+"Z")
}

// fixed chooses how to write binary of a fixed size.
func (l *leaf) fixed() {
	write := hex.AppendEncode
	switch length := l.TypeLength.V; l.LogicalType.Value.(type) {
	case *format.Float16Type:
		if length == 2 {
			l.raw = true
			write = func(dst, v []byte) []byte {
				return appendFloat(dst, float64(float16.FromBits(binary.LittleEndian.Uint16(v)).Float32()), 32)
			}
		}
	case *format.UUIDType:
		if length == 16 {
			write = appendUUID
		}
	default:
		if length == 12 && l.converted(deprecated.Interval) {
			write = appendInterval
		}
	}
	l.text = func(dst []byte, v value) []byte { return write(dst, v.bytes) }
}

func appendUUID(dst, v []byte) []byte {
	for i, part := range [][]byte{v[:4], v[4:6], v[6:8], v[8:10], v[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// appendInterval writes months, days and milliseconds: "1 year 2 months 3 days
// 04:05:06". They cannot be converted into each other.
func appendInterval(dst, v []byte) []byte {
	months, days, millis := binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:]), binary.LittleEndian.Uint32(v[8:])
	before := len(dst)
	count := func(n uint32, unit string) {
		if n == 0 {
			return
		}
		if len(dst) > before {
			dst = append(dst, ' ')
		}
		dst = append(append(strconv.AppendUint(dst, uint64(n), 10), ' '), unit...)
		if n > 1 {
			dst = append(dst, 's')
		}
	}
	count(months/12, "year")
	count(months%12, "month")
	count(days, "day")
	if millis == 0 && len(dst) > before {
		return dst
	}
	if len(dst) > before {
		dst = append(dst, ' ')
	}
	seconds := millis / 1000
	dst = fmt.Appendf(dst, "%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	if millis%1000 != 0 {
		dst = fmt.Appendf(dst, ".%03d", millis%1000)
	}
	return dst
}

// maxScale and maxDecimal bound the digits of a DECIMAL and the bytes of its
// number. Warehouses have up to 76 digits.
const maxScale, maxDecimal = 1000, 512

// appendDecimal writes a big-endian number in two's complement.
func appendDecimal(dst, v []byte, scale int32) []byte {
	if len(v) > maxDecimal {
		panic(errTooLarge) // Reader turns it into an error
	}
	n := new(big.Int).SetBytes(v)
	if len(v) > 0 && v[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(v))*8))
	}
	return appendPoint(dst, n.Append(nil, 10), scale)
}

// appendPoint inserts the decimal point into a number's digits.
func appendPoint(dst, digits []byte, scale int32) []byte {
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	if scale <= 0 {
		return append(dst, digits...)
	}
	whole := len(digits) - int(scale)
	if whole <= 0 {
		dst = append(dst, "0."...)
		for ; whole < 0; whole++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(append(dst, digits[:whole]...), '.')
	return append(dst, digits[whole:]...)
}

// appendFloat writes numbers of common size without an exponent, so that a
// phone number or an id from a spreadsheet stays readable.
func appendFloat(dst []byte, v float64, bits int) []byte {
	if size := math.Abs(v); size == 0 || size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(dst, v, 'f', -1, bits)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits)
}

// appendValue appends a value as JSON. A number that JSON cannot represent
// (NaN) becomes null, and binary that is not text becomes hex.
func (l *leaf) appendValue(dst []byte, v value) []byte {
	if l.null {
		return append(dst, "null"...)
	}
	before := len(dst)
	if dst = l.text(dst, v); l.raw {
		if c := dst[len(dst)-1]; c == 'N' || c == 'f' && len(dst)-before <= 4 {
			dst = append(dst[:before], "null"...)
		}
		return dst
	}
	text := string(dst[before:])
	if !utf8.ValidString(text) {
		text = hex.EncodeToString([]byte(text))
	}
	return appendQuoted(dst[:before], text)
}

func appendQuoted(dst []byte, text string) []byte {
	quoted, _ := jsontext.AppendQuote(dst, text) // the only error is text that is not UTF-8
	return quoted
}
