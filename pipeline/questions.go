package pipeline

import (
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
)

// questions are the distinct keys of a batch, and for each row which of them
// it asks; -1 for rows that have no key, are suppressed or that asks says nothing is asked of.
func questions(b *columns.Batch, asks func(i int) bool) (keys []string, question []int) {
	first := make(map[string]int, b.Len())
	question = make([]int, b.Len())
	for i, o := range b.Outcomes {
		question[i] = -1
		if o != outcome.Matched || !asks(i) {
			continue
		}
		q, seen := first[string(b.Keys.At(i))]
		if !seen {
			q = len(keys)
			key := string(b.Keys.At(i))
			first[key] = q
			keys = append(keys, key)
		}
		question[i] = q
	}
	return keys, question
}
