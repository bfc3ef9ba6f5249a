package sources

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestCheckText: columns of bytes are read as text if they are, and refused by name
// if they are not and are wanted.
func TestCheckText(t *testing.T) {
	type row struct {
		ID     string   `parquet:"id"`
		Plain  []byte   `parquet:"plain"`
		Photo  []byte   `parquet:"photo"`
		Some   []byte   `parquet:"some"`
		Zero   []byte   `parquet:"zero"`
		Null   *[]byte  `parquet:"null,optional"`
		Fixed  [4]byte  `parquet:"fixed"`
		List   [][]byte `parquet:"list,list"`
		Last   []byte   `parquet:"last"`
		Binary struct {
			Body []byte `parquet:"body"`
		} `parquet:"binary"`
	}
	var table []row
	for i := range 40 {
		r := row{ID: fmt.Sprint(i), Plain: []byte("ä"), Photo: []byte{0xff, 0xd8, byte(i)}, Some: []byte("a"), Zero: []byte{0, byte(i)}, Last: []byte("z"), List: [][]byte{{0xfe}}}
		if i == 1 {
			r.Some = []byte{0xff}
		}
		if i == 39 {
			r.Last = []byte{0xfe}
		}
		r.Binary.Body = []byte("x")
		table = append(table, r)
	}
	var file bytes.Buffer
	if err := parquet.Write(&file, table, parquet.MaxRowsPerRowGroup(10)); err != nil {
		t.Fatal(err)
	}
	folder(t, map[string]string{"a.parquet": file.String(), "b.csv": "id,photo\n1,2\n"})
	const keep = `. Leave it out: name the columns that you want with --select; or write it as text`
	for columns, want := range map[string]string{
		"id plain null fixed binary list": "",
		"id photo":                        `a.parquet has binary data, not text, in column "photo"` + keep,
		"id Photo":                        `a.parquet has binary data, not text, in column "photo"` + keep,
		"id some":                         `a.parquet has binary data, not text, in column "some"` + keep,
		"id zero":                         `a.parquet has binary data, not text, in column "zero"` + keep,
		"id last":                         `a.parquet has binary data, not text, in column "last"` + keep,
		"some":                            "", // its row is rejected
		"photo":                           `a.parquet has binary data, not text, in column "photo". Name another column with --id-column, or write it as text`,
	} {
		l, err := Open(t.Context(), []string{"a.parquet"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		names := strings.Fields(columns)
		if got := errorText(l.CheckText(t.Context(), names, names[0])); got != want {
			t.Errorf("%s: %s, want %s", columns, got, want)
		}
		l.Close()
	}
	l, err := Open(t.Context(), []string{"b.csv"}, Options{})
	if err != nil || l.CheckText(t.Context(), []string{"id", "photo"}, "id") != nil {
		t.Error("a CSV file was refused")
	}
}
