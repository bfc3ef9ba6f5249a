// Package shellword writes words of commands for a POSIX shell.
package shellword

import (
	"regexp"
	"strings"
)

var plain = regexp.MustCompile(`^[\w./:@%+=,-]+$`)

// Quote quotes a word if it has to be.
func Quote(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Join writes a command.
func Join(words []string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(Quote(word))
	}
	return b.String()
}
