package resolution

import "iter"

// Phone is what a lead may be known by beside the kinds of identifier that
// operations are asked about.
const Phone Identifier = "phone"

// Identifiers are the values in a lead that say who it is about, each with its
// kind: Email (an address or a digest of one), Phone and NetworkURL. Those of
// its company are not among them.
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
