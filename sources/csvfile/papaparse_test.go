package csvfile

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// deviations are the cases of Papa Parse that are read otherwise here, with
// what becomes of them. docs/reference/reasons.md has the rules: a malformed line is a
// reject, blank lines are none, and only line feeds end a line.
var deviations = map[string]string{
	"Quoted field has no closing quote":                                                         `reject 2:1 unclosed_quote "a,\"b,c"|reject 3:2 ragged_row "d,e,f"`,
	"Quoted field has invalid trailing quote after delimiter with a valid closer":               `row 2: ["d" "e" "f"]|reject 2:1 stray_quote "\"a,\"b,c\""`,
	"Quoted field has invalid trailing quote after delimiter":                                   `reject 2:1 stray_quote "a,\"b,\"c"|reject 3:2 ragged_row "d,e,f"`,
	"Quoted field has invalid trailing quote before delimiter":                                  `reject 2:1 stray_quote "a,\"b\"c,d"|reject 3:2 ragged_row "e,f,g"`,
	"Quoted field has invalid trailing quote after new line":                                    `reject 2:1 stray_quote "a,\"b,c"|reject 3:2 ragged_row "d\"e,f,g"`,
	"Quoted fields with spaces between closing quote and next delimiter":                        `reject 2:1 stray_quote "A,\"B\" ,C,D"|reject 3:2 stray_quote "E,F,\"G\"  ,H"`,
	"Quoted fields with spaces between closing quote and next new line":                         `row 3: ["Q" "W" "E" "R"]|reject 2:1 stray_quote "A,B,C,\"D\" "|reject 3:2 stray_quote "E,F,G,\"H\"  "`,
	"Quoted fields with spaces after closing quote":                                             `reject 2:1 stray_quote "A,\"B\" ,C,\"D\" "|reject 3:2 stray_quote "E,F,\"G\"  ,\"H\"  "|reject 4:3 stray_quote "Q,W,\"E\" ,R"`,
	"Quoted fields with spaces between closing quote and next delimiter and contains delimiter": `row 2: ["E" "F" "G" "H"]|reject 2:1 stray_quote "A,\",B\" ,C,D"`,
	"Quoted fields with spaces between closing quote and newline and contains newline":          `row 3: ["d" "e" "f"]|reject 2:1 stray_quote "a,b,\"c"|reject 3:2 unclosed_quote "\" "`,
	"Input is just empty fields":                                                                `row 2: ["" "" "" ""]|reject 2:1 ragged_row ",,"`,
	"Two rows, just \\r":                                                                        `reject 2:1 ragged_row "A,b,c\rd,E,f"`,
	"Mixed slash n and slash r should choose first as precident":                                `row 2: ["d" "e" "f\rg" "h" "i"]|reject 2:1 ragged_row "a,b,c"`,
	"One column input with empty fields":                                                        `row 1: ["a"]|row 2: ["b"]|row 3: ["c"]|row 4: ["d"]|row 5: ["e"]`,
	"Blank line at beginning":                                                                   `row 1: ["a" "b" "c"]|row 2: ["d" "e" "f"]`,
	"Blank line in middle":                                                                      `row 1: ["a" "b" "c"]|row 2: ["d" "e" "f"]`,
	"Blank lines at end":                                                                        `row 1: ["a" "b" "c"]|row 2: ["d" "e" "f"]`,
	"Blank line in middle with whitespace":                                                      `row 1: ["a" "b" "c"]|row 3: ["d" "e" "f"]|reject 3:2 ragged_row " "`,
}

// TestPapaParse reads the cases of another parser, each behind a header that
// has their delimiter.
// Source: mholt/PapaParse, tests/test-cases.js (MIT).
func TestPapaParse(t *testing.T) {
	data, err := os.ReadFile("testdata/papaparse.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name     string     `json:"d"`
		Input    string     `json:"input"`
		Expected [][]string `json:"expected"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for _, c := range cases {
		width, delimiter := 1, ","
		for _, row := range c.Expected {
			width = max(width, len(row))
		}
		switch {
		case strings.HasPrefix(c.Input, "one|"):
			delimiter = "|"
		case strings.Contains(c.Input, ";Field"):
			delimiter = ";"
		}
		text := "c1" + strings.Repeat(delimiter+"c", width-1) + "\n" + c.Input
		if strings.HasPrefix(c.Input, "\ufeff") {
			text = "\ufeffc1,c\n" + strings.TrimPrefix(c.Input, "\ufeff")
		}
		h, err := Inspect(Sample{Name: "a.csv", Bytes: []byte(text), Whole: true}, 0)
		if err != nil || h.Delimiter != delimiter[0] && width > 1 {
			t.Errorf("%s: delimiter %q, want %q, %v", c.Name, h.Delimiter, delimiter, err)
			continue
		}
		pick := make([]int, width)
		for i := range pick {
			pick[i] = i
		}
		want := result{Records: c.Expected}
		for i := range c.Expected {
			want.Numbers = append(want.Numbers, int64(i+1))
		}
		wanted := want.String()
		if deviation, ok := deviations[c.Name]; ok {
			wanted = strings.ReplaceAll(deviation, "|", "\n") + "\n"
			met[c.Name] = true
		}
		for _, m := range manners {
			got, err := readColumns(text, m, h, pick)
			if err != nil || got.String() != wanted {
				t.Errorf("%s: %q\n got %v\nwant %v, %v", c.Name, c.Input, got, wanted, err)
				break
			}
		}
	}
	if len(cases) != 76 || len(met) != len(deviations) {
		t.Errorf("%d cases, %d deviations", len(cases), len(met))
	}
}
