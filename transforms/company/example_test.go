package company_test

import (
	"fmt"

	"github.com/leadetl/leadetl/transforms/company"
)

func ExampleParseRange() {
	r := company.ParseRange("$1-10M")
	fmt.Println(r.Min, r.Max)
	r = company.ParseRange("10,001+ employees")
	fmt.Println(r.Min, r.HasMax)
	r = company.ParseRange("Nov-50") // was 11-50
	fmt.Println(r.HasMin, r.HasMax, r.Spreadsheet)
	// Output:
	// 1000000 10000000
	// 10001 false
	// false false true
}

func ExampleDomain() {
	fmt.Println(company.Domain("https://www.Bücher.example:8080/about"))
	// Output: xn--bcher-kva.example
}
