package rows

import (
	"fmt"
	"testing"
)

// TestKeep: a batch without some rows has their numbers, lines and cells no more, and those of the
// others are unchanged.
func TestKeep(t *testing.T) {
	for _, f := range []struct {
		keep    string // a + for a row that is kept
		want    string
		dropped int
	}{
		{"+++++", "1@2=a 2@3=- 4@5=c 5@8=d 7@10=e", 0},
		{"-+-++", "2@3=- 5@8=d 7@10=e", 2},
		{"+-+--", "1@2=a 4@5=c", 3},
		{"-----", "", 5},
	} {
		b := NewBuilder(1, 8)
		for _, row := range []struct {
			row, line int64
			cell      string
		}{{1, 2, "a"}, {2, 3, "-"}, {4, 5, "c"}, {5, 8, "d"}, {7, 10, "e"}} {
			if row.cell == "-" {
				b.AddNull(0)
			} else {
				b.Add(0, []byte(row.cell))
			}
			b.Commit(row.row, row.line)
		}
		b.Reject(Reject{Row: 3, Line: 4}, nil)
		batch := b.Batch("list", []int{0})
		dropped := batch.Keep(func(i int) bool { return f.keep[i] == '+' })
		got := ""
		for i := range batch.Len() {
			cell := batch.Columns[0].Value(i)
			if batch.Columns[0].IsNull(i) {
				cell = "-"
			}
			got += fmt.Sprintf(" %d@%d=%s", batch.Rows[i], batch.Line(i), cell)
		}
		if got != " "+f.want && got+f.want != "" || dropped != f.dropped || len(batch.Rejects) != 1 {
			t.Errorf("%s: %d dropped, %s, want %d, %s", f.keep, dropped, got, f.dropped, f.want)
		}
		batch.Release()
	}
}
