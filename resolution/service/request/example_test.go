package request_test

import (
	"fmt"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/transforms/profile"
)

func Example() {
	for _, body := range []string{
		`{ "network_url": "https://www.network.example/in/Ada", "crm_id": 7.0 }`,
		`{"network_url": "https://network.example/company/ada", "callback_url": "here", "metadata": ["a"]}`,
		`{"network_url": `,
	} {
		o, err := request.Parse([]byte(body))
		if err != nil {
			fmt.Println(err)
			continue
		}
		call, problems := request.DefaultLimits().Single(resolution.Enrichment, o, profile.DefaultRules())
		for _, p := range problems {
			fmt.Printf("%s (%s): %s\n", p.Pointer, p.Code, p.Detail)
		}
		if problems == nil {
			fmt.Printf("%s, asked as %s\n", call.Key, call.Payload)
		}
	}
	// Output:
	// network.example/in/ada, asked as {"network_url":"https://www.network.example/in/Ada","crm_id":7.0}
	// /network_url (not_a_profile): must be the page of a person, not of a company, a school or a showcase
	// /callback_url (invalid_url): must be an absolute URL, such as https://example.com/path
	// /metadata (wrong_type): must be an object
	// malformed JSON: ends before it is complete, at byte 16
}
