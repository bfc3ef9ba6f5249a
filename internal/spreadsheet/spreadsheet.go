// Package spreadsheet removes the marks by which spreadsheets, and programs that write for them,
// keep a cell from being read as a number or a formula.
//
// Two marks exist: an apostrophe in front ('02138, '+14155550100) and a formula of one text
// (="02138"). A tab or a space in front of =, +, - or @ is one too: callers trim white space. What
// follows an apostrophe stays whole.
package spreadsheet

import (
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/leadetl/leadetl/internal/invisible"
)

// Value returns an identifier without its mark. A cell without a mark is returned as it is.
func Value(cell string) string {
	if len(cell) == 0 || cell[0] > ' ' && cell[0] < utf8.RuneSelf && cell[0] != '\'' && cell[0] != '=' {
		return cell // nearly all
	}
	switch text := strings.TrimFunc(cell, isAround); {
	case text == "":
	case text[0] == '\'':
		return text[1:]
	case text[0] == '=':
		if inside, ok := formula(text); ok {
			return inside
		}
	}
	return cell
}

// ValueOf is Value of bytes. What it returns is a part of cell, unless quotes were doubled.
func ValueOf(cell []byte) []byte {
	value := Value(unsafe.String(unsafe.SliceData(cell), len(cell)))
	return unsafe.Slice(unsafe.StringData(value), len(value))
}

// Text is Value for names, places and prose, where an apostrophe may belong to the text:
// 's-Hertogenbosch, 't Hart, 'Growth' marketer.
func Text(cell string) string {
	if text := strings.TrimFunc(cell, isAround); strings.HasPrefix(text, "'") && beginsText(text[1:]) {
		return cell
	}
	return Value(cell)
}

// beginsText reports whether an apostrophe before rest belongs to the text: before one letter
// that stands for a word, or as the first of two quotation marks.
func beginsText(rest string) bool {
	first, size := utf8.DecodeRuneInString(rest)
	if unicode.IsLower(first) && len(rest) > size && strings.ContainsRune(" -", rune(rest[size])) {
		return true
	}
	for i, c := range rest {
		if c != '\'' || i == 0 {
			continue
		}
		if next, _ := utf8.DecodeRuneInString(rest[i+1:]); i+1 == len(rest) || !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return true
		}
	}
	return false
}

// formula returns the text of a formula that is one text. Its quotes are doubled inside.
func formula(cell string) (text string, ok bool) {
	if len(cell) < len(`=""`) || cell[1] != '"' || cell[len(cell)-1] != '"' {
		return "", false
	}
	text = cell[2 : len(cell)-1]
	if !strings.Contains(text, `"`) {
		return text, true
	}
	joinsTexts := strings.Contains(strings.ReplaceAll(text, `""`, ""), `"`)
	return strings.ReplaceAll(text, `""`, `"`), !joinsTexts
}

func isAround(c rune) bool { return unicode.IsSpace(c) || invisible.Is(c) }
