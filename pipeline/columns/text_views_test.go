package columns

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"pgregory.net/rapid"
)

// Views have the texts that were added, and an array keeps those that it was made with.
func TestTextViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var views textViews
		var want []string
		first := rapid.IntRange(0, 9).Draw(t, "texts of the first array")
		var before *array.StringView
		for i := range rapid.IntRange(0, 60).Draw(t, "texts") {
			if i == first {
				before = views.array(nil).(*array.StringView)
			}
			want = append(want, rapid.StringN(0, 40, -1).Draw(t, "text")+strings.Repeat("x", rapid.SampledFrom([]int{0, 0, 0, 2000, 1 << 20}).Draw(t, "more")))
			views.add(strings.Clone(want[i]))
		}
		all := views.array(nil).(*array.StringView)
		for i, text := range want {
			if string(views.at(i)) != text || all.Value(i) != text || before != nil && i < first && before.Value(i) != text {
				t.Fatalf("text %d is %.50q, in the array %.50q; want %.50q", i, views.at(i), all.Value(i), text)
			}
		}
		if before != nil && before.Len() != first {
			t.Fatalf("an array of %d texts has %d", first, before.Len())
		}
	})
}
