// Package nullword recognizes the words that programs write for a missing
// value.
package nullword

import "strings"

// Is reports whether s is a word for a missing value: null, none, n/a,
// undefined or -, in any case. The caller trims s. The empty string is not
// such a word.
func Is[T string | []byte](s T) bool {
	switch len(s) {
	case 1:
		return s[0] == '-'
	case 3:
		return strings.EqualFold(string(s), "n/a")
	case 4:
		return strings.EqualFold(string(s), "null") || strings.EqualFold(string(s), "none")
	case 9:
		return strings.EqualFold(string(s), "undefined")
	}
	return false
}
