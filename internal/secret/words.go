package secret

import (
	"fmt"
	"os"
	"strings"
	"unicode"
)

// ReadWords is Read of several secrets with white space between them, line
// ends too: as those that are valid together while one replaces another. There
// is at least one.
func ReadWords(env, file string) ([]Text, error) {
	content, place := os.Getenv(env), "the environment variable "+env
	if file != "" {
		var err error
		if content, err = readFile(file); err != nil {
			return nil, err
		}
		place = file
	}
	var words []Text
	for word := range strings.FieldsSeq(content) {
		if strings.ContainsFunc(word, unicode.IsControl) {
			return nil, fmt.Errorf("%s holds control characters: it must hold the secrets alone", place)
		}
		words = append(words, New(word))
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: %s is empty or not set, put the secret there", ErrNotGiven, place)
	}
	return words, nil
}
