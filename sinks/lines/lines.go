// Package lines writes rows of Arrow arrays as lines of text: CSV and JSON Lines.
//
// A line can be read back without doubt. In CSV (RFC 4180, lines end in LF), null is an empty cell and
// an empty text is "". A list of texts is joined by semicolons; as a JSON list it stands in a cell
// where the joined text would say something else. Lists of structs are always JSON.
package lines

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/go-json-experiment/json/jsontext"
)

// Encoder writes rows of some columns.
type Encoder struct {
	// Header is what a file begins with; nothing in JSON Lines.
	Header []byte
	names  [][]byte // of JSON, with what is before and behind them; nil in CSV
	alone  bool     // there is one column
}

// NewCSV is an encoder of CSV.
func NewCSV(columns []string) *Encoder {
	e := &Encoder{alone: len(columns) == 1}
	for i, name := range columns {
		if i > 0 {
			e.Header = append(e.Header, ',')
		}
		e.Header = AppendCell(e.Header, []byte(name))
	}
	e.Header = append(e.Header, '\n')
	return e
}

// NewJSON is an encoder of JSON Lines.
func NewJSON(columns []string) *Encoder {
	e := &Encoder{names: make([][]byte, 0, len(columns))}
	for i, name := range columns {
		before := byte(',')
		if i == 0 {
			before = '{'
		}
		e.names = append(e.names, append(appendQuoted([]byte{before}, name), ':'))
	}
	return e
}

// cells are those of a column in some rows. Of texts, the values are known, because most cells are such.
type cells struct {
	arrow.Array
	isText  bool
	plain   bool // no text has a special byte
	nulls   bool
	offsets []int32
	data    []byte
}

func cellsOf(a arrow.Array, rows int) cells {
	c := cells{Array: a, nulls: a.NullN() > 0}
	if text, is := a.(*array.String); is && rows > 0 {
		c.isText, c.offsets = true, text.ValueOffsets()
		c.data = text.Data().Buffers()[2].Bytes()
		c.plain = true
		for _, b := range special { // this takes a tenth of the time of a look at each cell
			c.plain = c.plain && bytes.IndexByte(c.data[c.offsets[0]:c.offsets[rows]], b) < 0
		}
	}
	return c
}

// Append appends the lines of some rows, of which the arrays have the columns.
func (e *Encoder) Append(to []byte, arrays []arrow.Array, rows int) []byte {
	all := make([]cells, len(arrays))
	for i, a := range arrays {
		all[i] = cellsOf(a, rows)
	}
	var room []byte
	for row := range rows {
		for i := range all {
			c := &all[i]
			switch {
			case e.names != nil:
				to = append(to, e.names[i]...)
				if c.isText && !(c.nulls && c.IsNull(row)) {
					to = appendQuoted(to, c.data[c.offsets[row]:c.offsets[row+1]])
				} else {
					to = AppendJSON(to, c.Array, row)
				}
				continue
			case i > 0:
				to = append(to, ',')
			}
			switch {
			case c.nulls && c.IsNull(row):
				if e.alone {
					to = append(to, `""`...) // many readers pass an empty line by
				}
			case e.alone && c.isText && string(c.data[c.offsets[row]:c.offsets[row+1]]) == `\.`:
				to = append(to, `"\."`...) // PostgreSQL takes it for the end of the rows without quotes
			case c.plain && c.offsets[row] < c.offsets[row+1]:
				to = append(to, c.data[c.offsets[row]:c.offsets[row+1]]...)
			case c.isText:
				to = AppendCell(to, c.data[c.offsets[row]:c.offsets[row+1]])
			default:
				room = appendJoined(room[:0], c.Array, row)
				to = AppendCell(to, room)
			}
		}
		if e.names != nil {
			to = append(to, '}')
		}
		to = append(to, '\n')
	}
	return to
}

// special are the bytes that a cell is quoted for.
var special = []byte("\",\n\r")

// AppendCell appends a cell of CSV that is not null, in quotes if it needs them.
func AppendCell(to, cell []byte) []byte {
	quoted := len(cell) == 0
	for _, c := range cell {
		if c == '"' || c == ',' || c == '\n' || c == '\r' {
			quoted = true
			break
		}
	}
	if !quoted {
		return append(to, cell...)
	}
	to = append(to, '"')
	for {
		i := bytes.IndexByte(cell, '"')
		if i < 0 {
			return append(append(to, cell...), '"')
		}
		to = append(append(to, cell[:i+1]...), '"')
		cell = cell[i+1:]
	}
}

// appendJoined is AppendText, but for lists of texts that can be joined.
func appendJoined(to []byte, a arrow.Array, i int) []byte {
	list, isList := a.(*array.List)
	if !isList {
		return AppendText(to, a, i)
	}
	texts, ofTexts := list.ListValues().(*array.String)
	from, end := list.ValueOffsets(i)
	if !ofTexts || from == end {
		return AppendJSON(to, a, i)
	}
	for at := int(from); at < int(end); at++ {
		text := ""
		if texts.IsValid(at) {
			text = texts.Value(at)
		}
		first := at == int(from)
		if text == "" || first && text[0] == '[' || strings.IndexByte(text, ';') >= 0 {
			return AppendText(to[:0], a, i)
		}
		if !first {
			to = append(to, ';')
		}
		to = append(to, text...)
	}
	return to
}

// AppendText appends a value as text: numbers in decimal, dates and times as ISO 8601, lists and
// structs as JSON. It appends nothing for null.
func AppendText(to []byte, a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return to
	}
	switch a := a.(type) {
	case *array.String:
		return append(to, a.Value(i)...)
	case *array.Date32:
		return time.Unix(int64(a.Value(i))*24*60*60, 0).UTC().AppendFormat(to, time.DateOnly)
	case *array.Timestamp: // of microseconds, as all of datasets
		return time.UnixMicro(int64(a.Value(i))).UTC().AppendFormat(to, "2006-01-02T15:04:05.999999Z")
	case *array.Float64:
		return appendFloat(to, a.Value(i))
	}
	return AppendJSON(to, a, i)
}

// AppendJSON appends a value as JSON. A number that JSON cannot represent (NaN) becomes null.
func AppendJSON(to []byte, a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return append(to, "null"...)
	}
	switch a := a.(type) {
	case *array.String:
		return appendQuoted(to, a.Value(i))
	case *array.Int64:
		return strconv.AppendInt(to, a.Value(i), 10)
	case *array.Int32:
		return strconv.AppendInt(to, int64(a.Value(i)), 10)
	case *array.Boolean:
		return strconv.AppendBool(to, a.Value(i))
	case *array.Float64:
		if v := a.Value(i); math.IsNaN(v) || math.IsInf(v, 0) {
			return append(to, "null"...)
		}
		return appendFloat(to, a.Value(i))
	case *array.List:
		from, end := a.ValueOffsets(i)
		to = append(to, '[')
		for at := from; at < end; at++ {
			if at > from {
				to = append(to, ',')
			}
			to = AppendJSON(to, a.ListValues(), int(at))
		}
		return append(to, ']')
	case *array.Struct:
		to = append(to, '{')
		for m := range a.NumField() {
			if m > 0 {
				to = append(to, ',')
			}
			name := a.DataType().(*arrow.StructType).Field(m).Name
			to = AppendJSON(append(appendQuoted(to, name), ':'), a.Field(m), i)
		}
		return append(to, '}')
	}
	return append(AppendText(append(to, '"'), a, i), '"') // a date or a time
}

// appendFloat writes numbers of common size without an exponent.
func appendFloat(to []byte, v float64) []byte {
	if size := math.Abs(v); size == 0 || size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(to, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(to, v, 'g', -1, 64)
}

// appendQuoted appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendQuoted[T string | []byte](to []byte, text T) []byte {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := jsontext.AppendQuote(to, text)
			return quoted
		}
	}
	return append(append(append(to, '"'), text...), '"')
}
