package jsonfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadetl/leadetl/internal/rows"
)

// HeaderLines is how many lines, within the sample, say what the columns are.
const HeaderLines = 1000

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// Header has the keys of the first objects of a file, in the order in which they are first seen.
// Keys that differ only in case are one, in its first spelling, unless a line has both.
type Header struct {
	Keys []string
	// Columns are the keys without surrounding white space; column_N for an empty one.
	Columns []string
}

// ErrEmpty means that a file has no line.
var ErrEmpty = errors.New("empty")

// ErrShort means that the sample ends before the first object does. A longer one may have it.
var ErrShort = errors.New("no whole object")

// Inspect finds the columns. sample is the beginning of the file, and whole says that it is all.
// Errors are *rows.FormatError.
func Inspect(name string, sample []byte, whole bool) (h Header, err error) {
	text := bytes.TrimPrefix(sample, byteOrderMark)
	if problem := otherShape(text, whole); problem != "" {
		return h, &rows.FormatError{File: name, Problem: problem, Advice: OneObjectEach}
	}
	if !whole {
		text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be cut
	}
	var p parser
	var found keys
	lines, objects := 0, 0
	for line := range bytes.Lines(text) {
		if lines == HeaderLines {
			break
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		lines++
		var keys []string
		if p.each(line, func(key string, _ jsontext.Value) string { keys = append(keys, key); return "" }) != "" {
			continue // it is rejected when its turn comes
		}
		objects++
		found.add(keys)
	}
	switch {
	case lines == 0 && whole:
		return h, &rows.FormatError{File: name, Problem: "is empty: it has no line", Advice: "Write a JSON object in each line", Err: ErrEmpty}
	case lines == 0 && len(sample) > LineLimit:
		return h, &rows.FormatError{File: name, Problem: fmt.Sprintf("has a first line of more than %d MiB", LineLimit>>20), Advice: "Write a JSON object in each line"}
	case objects == 0:
		e := &rows.FormatError{File: name, Problem: "has no JSON object in its first lines", Advice: "Write a JSON object in each line"}
		if !whole && lines < HeaderLines {
			e.Err = ErrShort
		}
		return h, e
	}
	h.Keys = found.columns()
	for i, key := range h.Keys {
		if key = strings.TrimSpace(key); key == "" {
			key = fmt.Sprintf("column_%d", i+1)
		}
		h.Columns = append(h.Columns, key)
	}
	return h, nil
}

// OneObjectEach is the advice for JSON of another shape.
const OneObjectEach = "If it is a list, write an object in each line: jq -c '.[]' FILE > FILE.jsonl"

// otherShape says what a text is that is JSON, but not JSON Lines: an array, or a value over
// several lines. Their lines would be rejected one by one, but for those that happen to be an
// object.
func otherShape(text []byte, whole bool) (problem string) {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != '[' && text[0] != '{' {
		return ""
	}
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err := d.SkipValue()
	cut := errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !cut {
		return ""
	}
	value, rest := bytes.TrimSpace(text), []byte(nil)
	if !cut {
		value, rest = text[:d.InputOffset()], text[d.InputOffset():]
	}
	overLines := bytes.IndexByte(value, '\n') >= 0
	switch {
	case text[0] == '[' && (overLines || cut && !whole || whole && len(bytes.TrimSpace(rest)) == 0):
		return "is a JSON array, not JSON Lines"
	case overLines:
		return "is JSON over several lines, not JSON Lines"
	}
	return ""
}

// keys are those of the objects of a file.
type keys struct {
	all   []string            // in the order in which they are first seen
	known map[string]struct{} // all
	apart map[string]struct{} // folded, of keys that a line has beside another spelling
}

// add adds the keys of an object.
func (k *keys) add(object []string) {
	if k.known == nil {
		k.known, k.apart = map[string]struct{}{}, map[string]struct{}{}
	}
	line := make(map[string]struct{}, len(object))
	for _, key := range object {
		folded := fold(key)
		if _, twice := line[folded]; twice {
			k.apart[folded] = struct{}{}
		}
		line[folded] = struct{}{}
		if _, known := k.known[key]; !known {
			k.known[key] = struct{}{}
			k.all = append(k.all, key)
		}
	}
}

// columns are the keys that are columns.
func (k *keys) columns() (columns []string) {
	taken := make(map[string]struct{}, len(k.all))
	for _, key := range k.all {
		folded := fold(key)
		_, apart := k.apart[folded]
		if _, other := taken[folded]; other && !apart {
			continue
		}
		taken[folded] = struct{}{}
		columns = append(columns, key)
	}
	return columns
}

// fold returns the same text for all keys that strings.EqualFold takes for equal.
func fold(key string) string {
	return strings.Map(func(c rune) rune {
		least := c
		for next := unicode.SimpleFold(c); next != c; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, key)
}
