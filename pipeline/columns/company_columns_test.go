package columns

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
)

// A company of reference data, with texts that stay there and have numbers, is in the columns as
// one without; so is one of other reference data, with other numbers.
func TestCompaniesOfReferenceData(t *testing.T) {
	everything := func(string) bool { return true }
	records, companies := newCompanyTable(everything), newCompanyTable(everything)
	random := rand.New(rand.NewPCG(1, 2))
	var memories [2][]byte
	for i := range memories {
		memories[i] = make([]byte, 0, 1<<20)
	}
	texts := map[string]int32{}
	for i := range 2000 {
		memory := &memories[i/1000]
		if i == 1000 {
			clear(texts)
		}
		plain, r := resolution.CompanyRecord{}, resolution.CompanyRecord{Memory: (*memory)[:cap(*memory)]}
		for field := range r.Fields {
			text := [...]string{
				resolution.CompanyDomain:      fmt.Sprintf("WWW.c%d.example", random.IntN(500)),
				resolution.CompanyNetworkURL:  fmt.Sprintf("https://network.example/company/%d/", random.IntN(500)),
				resolution.CompanyRevenue:     fmt.Sprintf("$%dM-$%dM", 1+random.IntN(9), 10+random.IntN(9)),
				resolution.CompanyYearFounded: fmt.Sprint(1900 + random.IntN(99)), resolution.CompanyAbout: fmt.Sprintf("what company %d says of itself", i),
			}[field]
			if text == "" && random.IntN(4) > 0 {
				text = fmt.Sprintf("text %d of field %d", random.IntN(99), field)
			}
			plain.Fields[field].Text = text
			key := fmt.Sprint(field, text)
			if random.IntN(2) == 0 && texts[key] == 0 {
				texts[key] = int32(len(texts)) + 1
			}
			from := len(*memory)
			*memory = append(*memory, text...)
			r.Fields[field] = resolution.CompanyField{Text: unsafe.String(unsafe.SliceData((*memory)[from:]), len(text)), Number: texts[key]}
		}
		if code, want := records.Add(r), companies.AddShared(plain.Company()); code != want {
			t.Fatalf("company %d has code %d, want %d", i, code, want)
		}
	}
	for i, c := range values.Company {
		got, want := records.columns[i].snapshot(), companies.columns[i].snapshot()
		if !array.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.Name, got, want)
		}
	}
	if about := records.columns[16].texts.copied; about > 1000*40 {
		t.Errorf("%d bytes of about were copied of the first 1,000 companies", about)
	}
}
