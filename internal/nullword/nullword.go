// Package nullword knows the words that programs write for nothing.
package nullword

import "strings"

// Is reports whether s, trimmed by the caller, says that there is no value:
// null, none, n/a, undefined or - in any case. The empty string is no word.
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
