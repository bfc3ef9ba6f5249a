package csvfile

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// Where batches end depends on rows and bytes alone.
func TestBatchBoundaries(t *testing.T) {
	var text bytes.Buffer
	text.WriteString("a,b\n")
	for range 10 {
		text.WriteString("1,2\n3\n4,5\n\n\"6\n\",7\n")
	}
	for _, m := range manners {
		m.maxRows = 7
		got, err := read(text.String(), m)
		if want := []int{7, 7, 7, 7, 2}; err != nil || !reflect.DeepEqual(got.Batches, want) {
			t.Errorf("block %d head %d: batches of %d rows, want %d, %v", m.block, m.head, got.Batches, want, err)
		}
	}

	// 3 MiB a row: a batch ends with the row that passes 8 MiB.
	wide := "a\n" + strings.Repeat(strings.Repeat("x", 3<<20)+"\n", 4)
	for _, m := range []manner{{block: 1 << 20, head: 64 << 10}, {block: 5 << 20, head: 0}} {
		got, err := read(wide, m)
		if want := []int{3, 1}; err != nil || !reflect.DeepEqual(got.Batches, want) {
			t.Errorf("block %d: batches of %d rows, want %d, %v", m.block, got.Batches, want, err)
		}
	}

	// A file of nothing but rejects comes in batches too.
	got, err := read("a,b\n"+strings.Repeat("x\n", 20_000), manners[len(manners)-1])
	if want := []int{0, 0, 0}; err != nil || !reflect.DeepEqual(got.Batches, want) || len(got.Rejects) != 20_000 {
		t.Errorf("batches of %d rows, %d rejects, %v", got.Batches, len(got.Rejects), err)
	}
}
