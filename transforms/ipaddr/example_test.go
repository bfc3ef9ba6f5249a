package ipaddr_test

import (
	"fmt"

	"github.com/leadetl/leadetl/transforms/ipaddr"
)

func ExampleLookupAddr() {
	for _, cell := range []string{"8.8.8.8:443", "100.64.0.1", "64:ff9b::808:808"} {
		a, err := ipaddr.Parse(cell)
		if err != nil {
			fmt.Println(err)
			continue
		}
		lookup, ok := ipaddr.LookupAddr(a)
		fmt.Println(ipaddr.ClassOf(a), lookup, ok)
	}
	// Output:
	// public 8.8.8.8 true
	// cgnat invalid IP false
	// nat64 8.8.8.8 true
}
