package rows

import (
	"fmt"
	"strings"
	"testing"
)

func show(b *Batch) string {
	var s strings.Builder
	for i, row := range b.Rows {
		fmt.Fprint(&s, row)
		for _, c := range b.Columns {
			if c.IsNull(i) {
				s.WriteString(" null")
			} else {
				fmt.Fprintf(&s, " %q", c.Value(i))
			}
		}
		s.WriteString("|")
	}
	return s.String()
}

func TestBuilder(t *testing.T) {
	// Again and again, because the second time buffers are used again.
	for range 3 {
		b := NewBuilder(2, 20)
		for i := range 10 {
			row := int64(i + 1)
			b.Add(0, fmt.Append(nil, "a", i))
			switch {
			case i%3 == 1:
				b.AddNull(1)
			case i == 5:
				b.AddNull(1)
				b.Rollback()
				b.Reject(Reject{Source: "a.csv", Line: 7, Row: row, Reason: RaggedRow}, []byte("raw"))
				continue
			default:
				b.SetSlot(1, append(b.Slot(1), 'b'))
			}
			b.Commit(row, row+1+row/7)
		}
		batch := b.Batch("a.csv", []int{1, 0, 1})
		want := `1 "b" "a0" "b"|2 null "a1" null|3 "b" "a2" "b"|4 "b" "a3" "b"|5 null "a4" null|` +
			`7 "b" "a6" "b"|8 null "a7" null|9 "b" "a8" "b"|10 "b" "a9" "b"|`
		if got := show(batch); got != want || batch.Len() != 9 || batch.Columns[0].NullN() != 3 || batch.Columns[1].NullN() != 0 {
			t.Errorf("got %s\nwant %s", got, want)
		}
		for i, row := range batch.Rows {
			if want := row + 1 + row/7; batch.Line(i) != want {
				t.Errorf("row %d is on line %d, want %d", row, batch.Line(i), want)
			}
		}
		if x := batch.Rejects; len(x) != 1 || x[0].Row != 6 || string(x[0].Raw) != "raw" {
			t.Errorf("rejects %v", x)
		}
		batch.Release()
	}
}

func TestBuilderIsFull(t *testing.T) {
	b := NewBuilder(1, 10)
	b.Add(0, make([]byte, FullBytes-1))
	b.Commit(1, 2)
	if b.Full() {
		t.Error("full a byte early")
	}
	b.Add(0, []byte("xx"))
	b.Rollback()
	if b.Full() {
		t.Error("full of what was taken back")
	}
	b.Reject(Reject{Reason: TooLarge}, make([]byte, 2*MaxRaw))
	if !b.Full() || len(b.rejects[0].Raw) != MaxRaw {
		t.Errorf("full %t, raw of %d bytes", b.Full(), len(b.rejects[0].Raw))
	}
	b.Discard()
}

func TestFormatError(t *testing.T) {
	tests := []struct {
		err  FormatError
		want string
	}{
		{FormatError{File: "a.csv", Problem: "is empty"}, "a.csv is empty"},
		{FormatError{File: "a.csv", Line: 3, Problem: "is odd", Advice: "Mend it"}, "a.csv:3 is odd. Mend it"},
		{FormatError{File: "a.csv", Problem: "cannot be read: permission denied", Err: ErrChanged}, "a.csv cannot be read: permission denied"},
	}
	for _, test := range tests {
		if got := test.err.Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
