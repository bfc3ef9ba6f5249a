package parquetfile

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// textColumn is an array whose values can be written as text.
type textColumn struct {
	arrow.Array
	append func(dst []byte, i int) []byte // value i, which is not null
}

// textOf says how the values of an array are written: text and binary as they
// are, binary of a fixed size (digests, UUIDs) in hex, numbers in decimal,
// dates and times as ISO 8601, lists and structs as JSON.
func textOf(a arrow.Array) textColumn {
	return textColumn{a, appender(a)}
}

func appender(a arrow.Array) func(dst []byte, i int) []byte {
	switch a := a.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.LargeString:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.Binary:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.LargeBinary:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.FixedSizeBinary:
		return func(dst []byte, i int) []byte { return hex.AppendEncode(dst, a.Value(i)) }
	case *array.Boolean:
		return func(dst []byte, i int) []byte { return strconv.AppendBool(dst, a.Value(i)) }
	case *array.Int8:
		return signed(a.Int8Values())
	case *array.Int16:
		return signed(a.Int16Values())
	case *array.Int32:
		return signed(a.Int32Values())
	case *array.Int64:
		return signed(a.Int64Values())
	case *array.Uint8:
		return unsigned(a.Uint8Values())
	case *array.Uint16:
		return unsigned(a.Uint16Values())
	case *array.Uint32:
		return unsigned(a.Uint32Values())
	case *array.Uint64:
		return unsigned(a.Uint64Values())
	case *array.Float16:
		return func(dst []byte, i int) []byte { return appendFloat(dst, float64(a.Value(i).Float32()), 32) }
	case *array.Float32:
		return func(dst []byte, i int) []byte { return appendFloat(dst, float64(a.Value(i)), 32) }
	case *array.Float64:
		return func(dst []byte, i int) []byte { return appendFloat(dst, a.Value(i), 64) }
	case *array.Date32:
		return func(dst []byte, i int) []byte { return a.Value(i).ToTime().AppendFormat(dst, time.DateOnly) }
	case *array.Date64:
		return func(dst []byte, i int) []byte { return a.Value(i).ToTime().AppendFormat(dst, time.DateOnly) }
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		return func(dst []byte, i int) []byte { return a.Value(i).ToTime(unit).AppendFormat(dst, timeOnly) }
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit
		return func(dst []byte, i int) []byte { return a.Value(i).ToTime(unit).AppendFormat(dst, timeOnly) }
	case *array.Timestamp:
		return timestamps(a)
	case *array.Dictionary:
		value := appender(a.Dictionary())
		return func(dst []byte, i int) []byte { return value(dst, a.GetValueIndex(i)) }
	case array.ExtensionArray:
		return appender(a.Storage())
	case array.ListLike, *array.Struct:
		return func(dst []byte, i int) []byte { return appendJSON(dst, a, i) }
	}
	return func(dst []byte, i int) []byte { return append(dst, a.ValueStr(i)...) }
}

func signed[T int8 | int16 | int32 | int64](values []T) func([]byte, int) []byte {
	return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(values[i]), 10) }
}

func unsigned[T uint8 | uint16 | uint32 | uint64](values []T) func([]byte, int) []byte {
	return func(dst []byte, i int) []byte { return strconv.AppendUint(dst, uint64(values[i]), 10) }
}

// appendFloat writes numbers of everyday size without an exponent: a phone
// number or an id that went through a spreadsheet stays readable as one.
func appendFloat(dst []byte, v float64, bits int) []byte {
	if size := math.Abs(v); size == 0 || size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(dst, v, 'f', -1, bits)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits)
}

const timeOnly = "15:04:05.999999999"

// timestamps writes an instant with its Z and a local time without.
func timestamps(a *array.Timestamp) func([]byte, int) []byte {
	kind := a.DataType().(*arrow.TimestampType)
	layout := "2006-01-02T15:04:05.999999999"
	if kind.TimeZone != "" {
		layout += "Z"
	}
	return func(dst []byte, i int) []byte { return a.Value(i).ToTime(kind.Unit).UTC().AppendFormat(dst, layout) }
}

// appendJSON writes a nested value. What JSON cannot hold (NaN) becomes null.
func appendJSON(dst []byte, a arrow.Array, i int) []byte {
	text, err := json.Marshal(a.GetOneForMarshal(i))
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, text...)
}
