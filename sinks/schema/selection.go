package schema

import (
	"fmt"
	"slices"
)

// The words in a selection that stand for several columns: those of them that it does not name.
const (
	All     = "all"
	Input   = "input"   // those of the input
	Answers = "answers" // the others
	Flat    = "flat"    // the others but lists
)

// Groups are these words.
var Groups = []string{All, Input, Answers, Flat}

// Select returns the places of the columns that --select names, in its order. groups has the places of
// the columns of each group, and find that of a name.
func Select(selected []string, groups map[string][]int, find func(name string) (int, error)) (places []int, err error) {
	var named []int
	for _, name := range selected {
		if _, isGroup := groups[name]; isGroup {
			continue
		}
		i, err := find(name)
		if err == nil && slices.Contains(named, i) {
			err = fmt.Errorf("--select names %q twice", name)
		}
		if err != nil {
			return nil, err
		}
		named = append(named, i)
	}
	rest := named
	for _, name := range selected {
		some, isGroup := groups[name]
		if !isGroup {
			places, rest = append(places, rest[0]), rest[1:]
		}
		for _, i := range some {
			if !slices.Contains(named, i) && !slices.Contains(places, i) {
				places = append(places, i)
			}
		}
	}
	return places, nil
}
