package phone_test

import (
	"fmt"

	"github.com/leadetl/leadetl/transforms/phone"
)

func ExampleParse() {
	n, err := phone.Parse("(650) 253-0000 x12", "US")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(n.E164, n.Form(phone.Last10), phone.Describe(n.E164))
	_, err = phone.Parse("6.50253E+09", "US")
	fmt.Println(err)
	// Output:
	// +16502530000 6502530000 {US fixed_line_or_mobile true}
	// excel_damage
}
