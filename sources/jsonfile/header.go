package jsonfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadetl/leadetl/internal/rows"
)

// HeaderLines is how many lines, within the sample, say what the columns are.
const HeaderLines = 1000

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// Header has the keys of the first objects of a file, in the order in which they are first seen.
type Header struct {
	Keys []string
	// Columns are the keys without surrounding white space; column_N for an empty one.
	Columns []string
}

// ErrEmpty means that a file has no line.
var ErrEmpty = errors.New("empty")

// Inspect finds the columns. sample is the beginning of the file, and whole says that it is all.
// Errors are *rows.FormatError.
func Inspect(name string, sample []byte, whole bool) (h Header, err error) {
	text := bytes.TrimPrefix(sample, byteOrderMark)
	if !whole {
		text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be cut
	}
	var p parser
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
		for _, key := range keys {
			if !slices.Contains(h.Keys, key) {
				h.Keys = append(h.Keys, key)
			}
		}
	}
	switch {
	case lines == 0 && whole:
		return h, &rows.FormatError{File: name, Problem: "is empty: it has no line", Advice: "Write a JSON object in each line", Err: ErrEmpty}
	case objects == 0:
		return h, &rows.FormatError{File: name, Problem: "has no JSON object in its first lines", Advice: "Write a JSON object in each line"}
	}
	for i, key := range h.Keys {
		if key = strings.TrimSpace(key); key == "" {
			key = fmt.Sprintf("column_%d", i+1)
		}
		h.Columns = append(h.Columns, key)
	}
	return h, nil
}
