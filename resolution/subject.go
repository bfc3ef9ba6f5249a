package resolution

import "iter"

// Phone is a kind of identifier that a lead may have, but that no operation takes.
const Phone Identifier = "phone"

// Identifiers returns the values in a lead that identify the person, each with its
// kind: Email (an address or a digest of one), Phone and NetworkURL. It leaves out
// those of the company.
func (l *Lead) Identifiers() iter.Seq2[Identifier, string] {
	return func(yield func(Identifier, string) bool) {
		given := func(kind Identifier, value string) bool { return value == "" || yield(kind, value) }
		for _, h := range l.HashedEmails {
			if !given(Email, h.Email) {
				return
			}
		}
		for _, e := range l.Emails {
			if !given(Email, e.Email) {
				return
			}
		}
		for _, p := range l.Phones {
			if !given(Phone, p.Phone) {
				return
			}
		}
		_ = given(Email, l.Email) && given(Phone, l.Phone) && given(NetworkURL, l.NetworkURL)
	}
}
