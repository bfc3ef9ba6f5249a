package columns

import (
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow/array"
	"pgregory.net/rapid"
)

// Views have the texts that were added, those in lent memory too, and an array keeps those that
// it was made with.
func TestTextViews(t *testing.T) {
	const size = 3 * windowBytes
	lent, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = syscall.Munmap(lent) }()
	rapid.Check(t, func(t *rapid.T) {
		var views textViews
		var want []string
		lends := rapid.IntRange(0, 9).Draw(t, "texts before memory is lent")
		var before *array.StringView
		n := rapid.IntRange(0, 60).Draw(t, "texts")
		for i := range n {
			if i == lends {
				views.lend(lent)
				before = views.array(nil).(*array.StringView)
			}
			text := rapid.StringN(0, 40, -1).Draw(t, "text") + strings.Repeat("x", rapid.SampledFrom([]int{0, 0, 0, 2000, 1 << 20}).Draw(t, "more"))
			want = append(want, strings.Clone(text))
			copied := views.copied
			if rapid.Bool().Draw(t, "in lent memory") {
				at := rapid.SampledFrom([]int{0, windowBytes - 9, 2*windowBytes - 9, 2 * windowBytes, size - len(text) - 1}).Draw(t, "at")
				copy(lent[at:], text)
				views.add(unsafe.String(&lent[at], len(text)))
				if i >= lends && views.copied > copied {
					t.Fatalf("a text at %d was copied", at)
				}
				if i < lends {
					continue
				}
				if got := string(views.at(i)); got != text {
					t.Fatalf("text %d at %d is %.50q, want %.50q", i, at, got, text)
				}
				want[i] = "" // the next text may take its place
				continue
			}
			views.add(text)
		}
		all := views.array(nil).(*array.StringView)
		for i, text := range want {
			if text != "" && (string(views.at(i)) != text || all.Value(i) != text) {
				t.Fatalf("text %d is %.50q, in the array %.50q; want %.50q", i, views.at(i), all.Value(i), text)
			}
		}
		if before != nil && before.Len() != lends {
			t.Fatalf("an array of %d texts has %d", lends, before.Len())
		}
	})
}
