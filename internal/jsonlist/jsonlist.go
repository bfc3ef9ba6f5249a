// Package jsonlist reads lists in a cell, which files of JSON Lines and Parquet have as JSON.
package jsonlist

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/nullword"
)

// Texts returns the values of a list: texts, and anything else as it is written. Nulls, null words
// and values without text do not count. ok is false if the cell is not a JSON array.
func Texts(cell string) (texts []string, ok bool) {
	if cell == "" || cell[0] != '[' {
		return nil, false
	}
	var values []json.RawMessage
	if json.Unmarshal([]byte(cell), &values) != nil {
		return nil, false
	}
	for _, value := range values {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		shown := strings.TrimFunc(text, func(c rune) bool { return unicode.IsSpace(c) || invisible.Is(c) })
		if shown != "" && !nullword.Is(shown) {
			texts = append(texts, text)
		}
	}
	return texts, true
}

// Only returns the value of a list with one, "" for an empty list, and any other cell as it is.
func Only(cell string) string {
	switch texts, ok := Texts(cell); {
	case !ok || len(texts) > 1:
		return cell
	case len(texts) == 1:
		return texts[0]
	}
	return ""
}
