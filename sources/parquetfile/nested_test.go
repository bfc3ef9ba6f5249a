package parquetfile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// nestedKinds are columns of a file that is nested in all ways, with a plain
// column before, between and behind: a place among the stored columns is not
// a place among the fields.
var nestedKinds = []arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "who", Type: arrow.StructOf(
		arrow.Field{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "age", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "at", Type: arrow.StructOf(
			arrow.Field{Name: "city", Type: arrow.BinaryTypes.String, Nullable: true},
		), Nullable: true},
	), Nullable: true},
	{Name: "email", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "jobs", Type: arrow.ListOf(arrow.StructOf(
		arrow.Field{Name: "title", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "years", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	)), Nullable: true},
	{Name: "scores", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "attributes", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String), Nullable: true},
	{Name: "last", Type: arrow.BinaryTypes.String, Nullable: true},
}

// nestedRow is a row as JSON text per column, "null" for none.
func nestedRow(i int) []string {
	row := []string{
		fmt.Sprint(i),
		fmt.Sprintf(`["t%d","u%d"]`, i, i%5),
		fmt.Sprintf(`{"name":"n%d","age":%d,"at":{"city":"c%d"}}`, i, i+1, i%9),
		fmt.Sprintf(`"e%d@example.com"`, i),
		fmt.Sprintf(`[{"title":"a%d","years":[%d,2]},{"title":"b%d","years":[]}]`, i, i+3, i),
		fmt.Sprintf(`[%d]`, i+4),
		fmt.Sprintf(`[{"key":"k","value":"v%d"}]`, i),
		fmt.Sprintf(`"l%d"`, i),
	}
	for column, every := range []int{0, 3, 5, 7, 11, 13, 17, 19} {
		if every > 0 && i%every == 1 {
			row[column] = "null"
		}
	}
	if i%4 == 2 {
		row[1], row[4], row[5] = "[]", "[]", "[]"
	}
	return row
}

func nestedFile(t testing.TB, n int, groupRows int64) []byte {
	t.Helper()
	columns := make([]arrow.Array, len(nestedKinds))
	for c, field := range nestedKinds {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = nestedRow(i)[c]
		}
		values, _, err := array.FromJSON(memory.DefaultAllocator, field.Type, strings.NewReader("["+strings.Join(texts, ",")+"]"))
		if err != nil {
			t.Fatal(err)
		}
		columns[c] = values
	}
	return write(t, array.NewRecord(arrow.NewSchema(nestedKinds, nil), columns, int64(n)), groupRows)
}

// nestedText is how a value of a row is written: texts without their quotes.
func nestedText(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) == nil && value != "null" {
		return text
	}
	return value
}

func TestNestedColumns(t *testing.T) {
	picks := [][]int{{1, 2}, {2, 1}, {0, 4}, {4, 0}, {3, 7}, {7, 3}, {3, 2}, {7, 6, 5, 4, 3, 2, 1, 0}, {0, 1, 2, 3, 4, 5, 6, 7}, {5, 3, 1}, {6, 7}}
	for c := range nestedKinds {
		picks = append(picks, []int{c})
	}
	for _, size := range []struct {
		rows  int
		group int64
	}{{40, 100}, {40, 7}, {9001, 20_000}, {5003, 1700}} {
		file := nestedFile(t, size.rows, size.group)
		if size.rows > 1000 {
			picks = [][]int{{4}, {5, 3, 1}, {7, 2}} // long files are for the row groups
		}
		for _, pick := range picks {
			got, _, err := read(file, pick, 1000)
			if err != nil || len(got) != size.rows {
				t.Errorf("%d rows by %d, columns %d: %d rows, %v", size.rows, size.group, pick, len(got), err)
				continue
			}
			for i, line := range got {
				want := fmt.Sprint(i+1, ":")
				row := nestedRow(i)
				for _, c := range pick {
					want += " " + nestedText(row[c])
				}
				if line != want {
					t.Errorf("%d rows by %d, columns %d:\n got %s\nwant %s", size.rows, size.group, pick, line, want)
					break
				}
			}
		}
	}
}
