package resolution

import (
	"fmt"
	"testing"
	"time"
)

// A row that is made of several answers has each group of columns whole, from one of them.
func TestAddMerged(t *testing.T) {
	seen, sure, year := time.UnixMicro(5).UTC(), 0.5, int32(1999)
	leads := []*Lead{
		{Phone: "+12025550123", PhoneRaw: "202 555 0123", Contact: Contact{Email: "a@x.example", FirstName: "Ada", Address: Address{City: "Ulm"}}},
		{Phone: "+12025550199", HashedEmails: []HashedEmail{{Email: "00", Type: "md5"}}, Contact: Contact{Email: "b@x.example", LastName: "Example", Emails: []ContactEmail{{"b@x.example", "work"}}, LastSeenAt: &seen}},
		{Company: &Company{Name: "Bakery", YearFounded: &year}, MatchLevel: "person", Confidence: &sure, Contact: Contact{Phones: []ContactPhone{{"+1", "home"}}, Address: Address{ZipCode: "01234"}}},
		nil,
	}
	from := NewAnswers()
	for _, l := range leads {
		from.AddLead(l)
	}
	rows := func(of ...int) (rows [Groups]AnswerRow) {
		for g, i := range of {
			if i >= 0 {
				rows[g] = AnswerRow{from, i}
			}
		}
		return rows
	}
	for _, f := range []struct {
		from []int // of each group
		want *Lead
	}{
		{[]int{0, 0, 0, 0, 0, 0, 0, 0, 0}, leads[0]},
		{[]int{1, 1, 1, 1, 1, 1, 1, 1, 1}, leads[1]},
		{[]int{2, 2, 2, 2, 2, 2, 2, 2, 2}, leads[2]},
		{[]int{1, 1, 0, 2, 1, 2, 0, 2, 1}, &Lead{
			Phone: leads[0].Phone, PhoneRaw: leads[0].PhoneRaw, HashedEmails: leads[1].HashedEmails, Company: leads[2].Company, MatchLevel: "person", Confidence: &sure,
			Contact: Contact{Email: "b@x.example", LastName: "Example", Emails: leads[1].Emails, Phones: leads[2].Phones, Address: Address{City: "Ulm"}, LastSeenAt: &seen},
		}},
		{[]int{-1, -1, 2, -1, -1, 2}, &Lead{Company: leads[2].Company}},
	} {
		to := NewAnswers()
		to.AddMiss("")
		to.AddMerged(rows(f.from...))
		if got, want := fmt.Sprintf("%+v", plain(to.Lead(1))), fmt.Sprintf("%+v", plain(f.want)); got != want {
			t.Errorf("%v:\n%s\nwant\n%s", f.from, got, want)
		}
	}
	for i, want := range []string{"101000101", "111010001", "000101110", "000000000"} {
		got := ""
		for g := range Groups {
			got += map[bool]string{true: "1", false: "0"}[AnswerRow{from, i}.Values()>>g&1 == 1]
		}
		if got != want {
			t.Errorf("answer %d has groups %s, want %s", i, got, want)
		}
	}
}

// plain is a lead whose pointers are replaced by what they point to.
func plain(l *Lead) any {
	type fields struct {
		Lead
		company    Company
		confidence float64
		seen       time.Time
	}
	f := fields{Lead: *l}
	if l.Company != nil {
		f.company, f.Company = *l.Company, nil
		f.company.YearFounded = nil
	}
	if l.Confidence != nil {
		f.confidence, f.Confidence = *l.Confidence, nil
	}
	if l.LastSeenAt != nil {
		f.seen, f.LastSeenAt = *l.LastSeenAt, nil
	}
	return f
}
