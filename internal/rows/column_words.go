package rows

import (
	_ "embed"
	"strings"
)

//go:embed column_words.txt
var wordList string

// columnWords are words of which the names of columns are made. Words that are also
// names of people are not among them.
var columnWords = func() map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.Fields(wordList) {
		words[word] = true
	}
	return words
}()
