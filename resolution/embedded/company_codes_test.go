package embedded

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

func TestCodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known, want := new(codes), map[uint32]int32{}
		numbers := rapid.SliceOf(rapid.OneOf(rapid.Uint32Range(0, 9), rapid.Uint32Range(1<<16-2, 1<<16+2), rapid.Uint32Range(math.MaxUint32-2, math.MaxUint32)))
		for i, number := range numbers.Draw(t, "numbers") {
			code, there := known.get(number)
			wanted, knows := want[number]
			if there != knows || there && code != wanted {
				t.Fatalf("%d has code %d, %t; want %d, %t", number, code, there, wanted, knows)
			}
			known.put(number, int32(i))
			want[number] = int32(i)
		}
	})
}

// A table gets the company of a range once, however many ranges there are.
func TestCompaniesAreAddedOnce(t *testing.T) {
	const ranges = 140_000
	var csv strings.Builder
	csv.WriteString("range_start,range_end,name,org_type\n")
	addrs := make([]string, ranges)
	for i := range addrs {
		addrs[i] = fmt.Sprintf("11.%d.%d.%d", i>>16, i>>8&255, i&255)
		fmt.Fprintf(&csv, "%s,%[1]s,Company %d,business\n", addrs[i], i)
	}
	path := filepath.Join(t.TempDir(), "ranges.csv")
	if err := os.WriteFile(path, []byte(csv.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	e := New(imported(t, directory.Files{IPRanges: path}), Options{})
	table := &lastingTable{CompanyList: &resolution.CompanyList{}}
	answers := &resolution.Answers{Companies: resolution.CompanyCodes{Table: table}}
	addrs = append(addrs, addrs...)
	for range 2 {
		b := e.NewBatch(resolution.IPToCompany)
		if _, err := b.Resolve(t.Context(), resolutiontest.Questions(resolution.IPToCompany, addrs...), math.MaxInt, answers); err != nil {
			t.Fatal(err)
		}
		for i, code := range answers.Companies.Codes {
			if code != int32(i%ranges+1) {
				t.Fatalf("company %d has code %d", i+1, code)
			}
		}
	}
	if next := table.Add(resolution.CompanyRecord{}); next != ranges+1 {
		t.Errorf("%d companies in the table, want %d", next-1, ranges)
	}
}
