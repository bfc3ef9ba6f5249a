package email_test

import (
	"fmt"

	"github.com/leadetl/leadetl/transforms/email"
)

func Example() {
	a, err := email.Parse([]byte(" Jane.Doe+News@gmail.com\u00A0"))
	if err != nil {
		fmt.Println(err) // one of the package's reasons
		return
	}
	fmt.Printf("key %s\n", a.AppendKey(nil))
	for _, p := range []email.Profile{email.Plain, email.UID2, email.Google} {
		if form, ok := a.AppendForm(nil, p); ok {
			sums := email.Sum(form)
			fmt.Printf("%d %s %x…\n", p, form, sums.SHA256[:4])
		}
	}
	// Output:
	// key jane.doe+news@gmail.com
	// 0 jane.doe+news@gmail.com f41439c9…
	// 1 janedoe@gmail.com d6117306…
	// 2 janedoe@gmail.com d6117306…
}
