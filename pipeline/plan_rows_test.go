package pipeline

import (
	"errors"
	"slices"
	"testing"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// TestFormerKeys: what is loaded for a plan is in ascending order, each hash once.
func TestFormerKeys(t *testing.T) {
	h := func(n byte) answers.Hash { return answers.Hash{n} }
	var f formerKeys
	for now, former := range map[byte]byte{1: 5, 2: 5, 3: 4, 6: 9, 7: 0} {
		f.pair(h(now), h(former))
	}
	damaged := errors.New("damaged")
	for _, c := range []struct {
		keys []byte
		want []byte
	}{
		{[]byte{1, 2, 3, 6, 7}, []byte{0, 1, 2, 3, 4, 5, 6, 7, 9}},
		{[]byte{4, 5}, []byte{0, 4, 5, 9}}, // some are keys too
		{nil, []byte{0, 4, 5, 9}},
		{[]byte{0, 9}, []byte{0, 4, 5, 9}},
		{[]byte{1, 255, 8}, []byte{0, 1, 255}}, // ends with an error
	} {
		var got []byte
		for hash, err := range f.and(func(yield func(answers.Hash, error) bool) {
			for _, n := range c.keys {
				if n == 255 {
					yield(h(n), damaged)
					return
				}
				if !yield(h(n), nil) {
					return
				}
			}
		}) {
			got = append(got, hash[0])
			if err != nil {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.keys, got, c.want)
		}
	}
}
