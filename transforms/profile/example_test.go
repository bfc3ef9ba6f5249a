package profile_test

import (
	"fmt"

	"github.com/leadetl/leadetl/transforms/profile"
)

func Example() {
	rules := profile.DefaultRules()
	fmt.Println(rules.ParsePerson("https://uk.linkedin.com/pub/jane-doe/a7/576/b50?trk=x"))
	fmt.Println(rules.ParsePerson("<https://network.example/in/Ada-Example/>"))
	fmt.Println(rules.ParsePerson("https://www.linkedin.com/company/acme-inc/"))
	// Output:
	// linkedin.com/in/jane-doe-b50576a7 <nil>
	// network.example/in/ada-example <nil>
	//  not_a_profile
}
