// Package person brings what a person is asked about by, such as a name and the domain of a company, into
// canonical form, and makes the key of a question of it.
//
// The one thing to know before using it: a key is JSON in canonical form, so that all spellings of the same
// values are one question.
package person

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/nullword"
	"github.com/leadetl/leadetl/internal/spreadsheet"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/email"
)

// domain is the value that is a domain. The others are text in which case does not matter.
const domain = "company_domain"

// Email is the value of who is known by an email address. A provider is asked about it alone.
const Email = "email"

// Names are the values that a person is asked about by together. Each is also the column of answers that has it.
var Names = []string{"first_name", "last_name", "full_name", domain, "company_name"}

// Is reports whether a name is one of Names.
func Is(name string) bool { return slices.Contains(Names, name) }

// maxValue bounds a value, in bytes.
const maxValue = 300

// Canonical is a value in canonical form: an email address as the key of a row, a domain as companies have them, other
// text in lower case with single spaces. It is "" for a text that is none.
func Canonical(name, text string) string {
	if !utf8.ValidString(text) || len(text) > maxValue {
		return ""
	}
	switch name {
	case domain:
		return company.Domain(text)
	case Email:
		address, err := email.Read([]byte(text))
		if err != nil {
			return ""
		}
		return string(address.AppendKey(nil))
	}
	around := func(c rune) bool { return unicode.IsSpace(c) || invisible.Is(c) }
	text = strings.TrimFunc(spreadsheet.Text(strings.TrimFunc(text, around)), around)
	text = strings.Join(strings.Fields(text), " ")
	if nullword.Is(text) {
		return ""
	}
	return norm.NFC.String(strings.ToLower(norm.NFC.String(text)))
}

// Forms are the texts by which persons are compared: the full name, or first and last name, with each of domain and
// name of a company. Values are in canonical form. There are none without a name or a company.
func Forms(values map[string]string) (forms []string) {
	names := []string{values["full_name"]}
	if first, last := values["first_name"], values["last_name"]; first != "" && last != "" {
		names = append(names, first+" "+last)
	}
	for _, name := range names {
		for _, company := range []string{domain, "company_name"} {
			if name != "" && values[company] != "" {
				forms = append(forms, Key(map[string]string{"full_name": name, company: values[company]}))
			}
		}
	}
	return forms
}

// Key is the key of values by their names: JSON with its members in order, without those that are empty.
func Key(values map[string]string) string {
	has := map[string]string{}
	for name, value := range values {
		if value != "" {
			has[name] = value
		}
	}
	key, _ := json.Marshal(has) // texts
	return string(key)
}

// IsKey reports whether a key is made of values. No identifier begins like one.
func IsKey(key string) bool { return strings.HasPrefix(key, "{") }

// Values are what a key is made of; nil for another text.
func Values(key string) (values map[string]string) {
	if !IsKey(key) || json.Unmarshal([]byte(key), &values) != nil {
		return nil
	}
	return values
}
