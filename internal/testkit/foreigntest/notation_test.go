package foreigntest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duckdb/duckdb-go/v2"
)

// kind is a type of DuckDB: its name without parameters, and what is in it.
type kind struct {
	name    string // LIST, STRUCT, MAP, or of a value
	members []string
	of      []kind
}

// parseKind reads a type as DESCRIBE prints it.
func parseKind(text string) kind {
	p := &kindParser{text}
	return p.kind()
}

type kindParser struct{ rest string }

func (p *kindParser) take(prefix string) bool {
	if !strings.HasPrefix(p.rest, prefix) {
		return false
	}
	p.rest = p.rest[len(prefix):]
	return true
}

func (p *kindParser) kind() (k kind) {
	switch {
	case p.take("STRUCT("):
		k.name = "STRUCT"
		for !p.take(")") {
			k.members = append(k.members, p.member())
			k.of = append(k.of, p.kind())
			p.take(", ")
		}
	case p.take("MAP("):
		k.name = "MAP"
		for !p.take(")") {
			k.of = append(k.of, p.kind())
			p.take(", ")
		}
	default:
		end := strings.IndexAny(p.rest, ",)[")
		if open := strings.IndexByte(p.rest, '('); open >= 0 && open < end {
			end = open + strings.IndexByte(p.rest[open:], ')') + 1
		}
		if end < 0 {
			end = len(p.rest)
		}
		k.name, _, _ = strings.Cut(p.rest[:end], "(")
		p.rest = p.rest[end:]
	}
	for p.take("[") {
		p.rest = p.rest[strings.IndexByte(p.rest, ']')+1:]
		k = kind{name: "LIST", of: []kind{k}}
	}
	return k
}

func (p *kindParser) member() (name string) {
	if !p.take(`"`) {
		name, p.rest, _ = strings.Cut(p.rest, " ")
		return name
	}
	for {
		part, rest, _ := strings.Cut(p.rest, `"`)
		name, p.rest = name+part, rest
		if !p.take(`"`) {
			p.take(" ")
			return name
		}
		name += `"`
	}
}

// equal compares our text with a value of DuckDB, where got is nil for null.
// docs/input.md has the notation of ours.
func (k kind) equal(got *string, want any) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	if !k.nested() {
		return k.equalText(*got, want)
	}
	tree, err := decode(*got)
	return err == nil && k.equalJSON(tree, want)
}

func (k kind) nested() bool { return k.name == "LIST" || k.name == "STRUCT" || k.name == "MAP" }

// equalText compares a value outside of JSON, or a text of JSON.
func (k kind) equalText(got string, want any) bool {
	switch v := want.(type) {
	case bool:
		return got == strconv.FormatBool(v)
	case float32:
		f, err := strconv.ParseFloat(got, 32)
		return err == nil && (float32(f) == v || f != f && v != v)
	case float64:
		f, err := strconv.ParseFloat(got, 64)
		return err == nil && (f == v || f != f && v != v)
	case string:
		return got == v
	case []byte:
		return k.name == "UUID" && strings.ReplaceAll(got, "-", "") == hex.EncodeToString(v) && strings.Count(got, "-") == 4 || k.name != "UUID" && (got == string(v) || got == hex.EncodeToString(v))
	case duckdb.UUID:
		return got == v.String()
	case time.Time:
		return got == k.instant(v)
	case duckdb.Decimal:
		digits := new(big.Float).SetPrec(300)
		_, ok := digits.SetString(got)
		_, places, _ := strings.Cut(got, ".")
		return ok && len(places) == int(v.Scale) && strings.ReplaceAll(strings.TrimLeft(strings.Replace(got, ".", "", 1), "-0"), "-", "") == strings.TrimLeft(v.Value.String(), "-0") && (digits.Sign() == v.Value.Sign())
	case duckdb.Interval:
		return got == interval(v)
	case int8, int16, int32, int64, int, uint8, uint16, uint32, uint64, *big.Int:
		return got == fmt.Sprint(v)
	}
	return false
}

// instant is a date or time as we write it: with Z only where it is an instant.
func (k kind) instant(v time.Time) string {
	v = v.UTC()
	switch {
	case k.name == "DATE":
		return v.Format(time.DateOnly)
	case strings.HasPrefix(k.name, "TIMESTAMP"):
		text := v.Format("2006-01-02T15:04:05.999999999")
		if strings.HasSuffix(k.name, "WITH TIME ZONE") {
			text += "Z"
		}
		return text
	}
	return v.Format("15:04:05.999999999")
}

// interval writes months, days and the rest as docs/input.md says.
func interval(v duckdb.Interval) string {
	var words []string
	for _, part := range []struct {
		n    int32
		unit string
	}{{v.Months / 12, "year"}, {v.Months % 12, "month"}, {v.Days, "day"}} {
		switch {
		case part.n == 1:
			words = append(words, "1 "+part.unit)
		case part.n != 0:
			words = append(words, fmt.Sprint(part.n, " ", part.unit, "s"))
		}
	}
	if v.Micros != 0 || len(words) == 0 {
		at := time.Unix(0, 0).UTC().Add(time.Duration(v.Micros) * time.Microsecond)
		hours := v.Micros / 3_600_000_000
		clock := at.Format(":04:05")
		if at.Nanosecond() != 0 {
			clock = at.Format(":04:05.000")
		}
		words = append(words, fmt.Sprintf("%02d", hours)+clock)
	}
	return strings.Join(words, " ")
}

// member is a member of an object, which keeps its order.
type member struct {
	name  string
	value any
}

// decode makes a tree of JSON: []any, []member, string, json.Number, bool, nil.
func decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeNext(d)
	if err == nil && d.More() {
		err = fmt.Errorf("more behind the value")
	}
	return v, err
}

func decodeNext(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		all := []any{}
		for d.More() {
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		_, err = d.Token()
		return all, err
	case json.Delim('{'):
		all := []member{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			all = append(all, member{name.(string), v})
		}
		_, err = d.Token()
		return all, err
	}
	return token, nil
}

// equalJSON compares a part of JSON with a value of DuckDB.
func (k kind) equalJSON(got, want any) bool {
	switch v := want.(type) {
	case nil:
		return got == nil
	case float32: // JSON has neither NaN nor infinities
		if got == nil {
			return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)
		}
	case float64:
		if got == nil {
			return math.IsNaN(v) || math.IsInf(v, 0)
		}
	case []byte:
		if k.name != "UUID" && !utf8.Valid(v) {
			return got == hex.EncodeToString(v)
		}
	}
	switch k.name {
	case "LIST":
		wants, isList := want.([]any)
		gots, ok := got.([]any)
		return isList && ok && slices.EqualFunc(gots, wants, k.of[0].equalJSON)
	case "STRUCT":
		wants, isStruct := want.(map[string]any)
		gots, ok := got.([]member)
		if !isStruct || !ok || len(gots) != len(k.members) {
			return false
		}
		for i, m := range gots {
			if m.name != k.members[i] || !k.of[i].equalJSON(m.value, wants[m.name]) {
				return false
			}
		}
		return true
	case "MAP":
		wants, isMap := want.(duckdb.OrderedMap)
		gots, ok := got.([]any)
		if !isMap || !ok || len(gots) != len(wants.Keys()) {
			return false
		}
		for i, pair := range gots {
			m, ok := pair.([]member)
			if !ok || len(m) != 2 || m[0].name != "key" || m[1].name != "value" ||
				!k.of[0].equalJSON(m[0].value, wants.Keys()[i]) || !k.of[1].equalJSON(m[1].value, wants.Values()[i]) {
				return false
			}
		}
		return true
	}
	text, isNumber := "", false
	switch g := got.(type) {
	case string:
		text = g
	case json.Number:
		text, isNumber = g.String(), true
	case bool:
		text, isNumber = strconv.FormatBool(g), true
	default:
		return false
	}
	switch want.(type) {
	case string, []byte, time.Time, duckdb.UUID, duckdb.Interval:
		if isNumber {
			return false
		}
	default:
		if !isNumber {
			return false
		}
	}
	return k.equalText(text, want)
}

// isBinary reports whether a value cannot be a text: its row is a
// reject.
func isBinary(v any) bool {
	b, ok := v.([]byte)
	return ok && !utf8.Valid(b)
}
