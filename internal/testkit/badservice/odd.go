package badservice

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// oddValues are none in most members: words, numbers and types that do not belong
// there.
var oddValues = []any{
	nil, "", "pending", "jane@mail.example", strings.Repeat("z", 64), strings.Repeat("ab", 20), "d41d8cd98f00b204e9800998ecf8427e", "\x00\U0010ffff",
	-5, 2.5, 1e300, "-7", "NaN", "$-5 – -1", "+1", true, []any{}, []any{nil}, map[string]any{}, []any{[]any{1}},
}

// odd returns a value with others in the place of some of its members. It follows
// from the name alone.
func odd(v any, name ...string) any {
	return oddly(v, rand.New(rand.NewPCG(binary.BigEndian.Uint64(hashOf(name...)), 0)))
}

func oddly(v any, dice *rand.Rand) any {
	member := func(v any) any {
		if dice.IntN(4) == 0 {
			return oddValues[dice.IntN(len(oddValues))]
		}
		return oddly(v, dice)
	}
	switch v := v.(type) {
	case map[string]any:
		other := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			other[name] = member(v[name])
		}
		return other
	case []any:
		var other []any
		for _, item := range v {
			other = append(other, member(item))
		}
		return other
	}
	return v
}
