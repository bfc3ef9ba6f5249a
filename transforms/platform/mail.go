package platform

import (
	"bytes"

	"github.com/leadetl/leadetl/transforms/email"
)

// byProfile is a form that datasets have digests of.
func byProfile(p email.Profile, rule Rule) Mail {
	return Mail{Rule: rule, Profile: int(p), append: func(to []byte, a email.Address) ([]byte, bool) { return a.AppendForm(to, p) }}
}

// withoutTag is the plain form without what follows the first plus sign before the @, at every domain.
// Source: ads.tiktok.com/help, customer file pages, June and August 2025.
func withoutTag(to []byte, a email.Address) ([]byte, bool) {
	form, ok := a.AppendForm(to, email.Plain)
	if !ok {
		return to, false
	}
	address := form[len(to):]
	at := bytes.LastIndexByte(address, '@')
	plus := bytes.IndexByte(address[:at], '+')
	switch {
	case plus < 0 || address[0] == '"':
		return form, true
	case plus == 0:
		return to, false
	}
	return append(form[:len(to)+plus], address[at:]...), true
}
