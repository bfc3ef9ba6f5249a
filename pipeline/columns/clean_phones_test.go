package columns_test

import (
	"reflect"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// TestCleanPhones: all numbers of an answer are in E.164 if they can be read. What cannot be read
// is no first number, and stays in the list as it was sent.
func TestCleanPhones(t *testing.T) {
	a := answersOf()
	a.AddLead(&resolution.Lead{Phone: "(202) 555-0100", Contact: resolution.Contact{Phones: []resolution.ContactPhone{
		{Phone: "202-555-0101", Type: "mobile"}, {Phone: "+44 20 7946 0000"}, {Phone: "ask the desk", Type: "work"},
	}}})
	a.AddLead(nil)
	a.AddLead(&resolution.Lead{Phone: "none", Contact: resolution.Contact{Phones: []resolution.ContactPhone{{Phone: "+12025550102", Type: "work"}}}})
	inTheUS.CleanPhones(a)

	type phones struct {
		first, raw string
		all        []resolution.ContactPhone
	}
	for i, want := range map[int]phones{
		0: {"+12025550100", "(202) 555-0100", []resolution.ContactPhone{{Phone: "+12025550101", Type: "mobile"}, {Phone: "+442079460000"}, {Phone: "ask the desk", Type: "work"}}},
		2: {"", "none", []resolution.ContactPhone{{Phone: "+12025550102", Type: "work"}}},
	} {
		l := a.Lead(i)
		if got := (phones{l.Phone, l.PhoneRaw, l.Phones}); !reflect.DeepEqual(got, want) {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
}
