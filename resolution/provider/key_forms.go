package provider

import (
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
)

// formsOf are the placeholders for the forms of a key, by the kind of identifier.
var formsOf = map[resolution.Identifier][]string{
	resolution.Email:      {"email", "email_md5", "email_sha256"},
	resolution.NetworkURL: {"network_url", "network_url_https", "handle"},
	resolution.IP:         {"ip"},
	resolution.Phone:      {"phone"},
}

// kindOf is the kind of identifier that a placeholder is a form of, "" if it is none.
func kindOf(placeholder string) resolution.Identifier {
	for kind, names := range formsOf {
		if slices.Contains(names, placeholder) {
			return kind
		}
	}
	return ""
}

// place returns the value of a placeholder; false if it has none.
type place func(name string) (value string, is bool)

// formOf are the forms of a key. A key that lacks a form of its kind is not asked about.
func formOf(key string) place {
	return func(name string) (value string, is bool) {
		if !utf8.ValidString(key) {
			return "", false
		}
		switch name {
		case "network_url", "ip", "phone":
			value = key
		case "network_url_https":
			value = "https://" + key
		case "handle":
			value = handle(key)
		default:
			value = emailForm(name, key)
		}
		return value, value != ""
	}
}

// handle is the name of a person's page in the network, "" for any other page.
func handle(key string) string {
	_, name, found := strings.Cut(key, "/in/")
	if host, _, _ := strings.Cut(key, "/"); !found || !strings.HasPrefix(key, host+"/in/") || strings.ContainsAny(name, "/?#") {
		return ""
	}
	return name
}

// emailForm is a form of a key that is an address or a digest of one.
func emailForm(name, key string) string {
	if !strings.Contains(key, "@") {
		lengths := map[string]int{"email_md5": 32, "email_sha256": 64}
		if len(key) == lengths[name] {
			return key
		}
		return ""
	}
	switch name {
	case "email":
		return key
	case "email_md5":
		sums := email.Sum([]byte(key))
		return hex.EncodeToString(sums.MD5[:])
	case "email_sha256":
		sums := email.Sum([]byte(key))
		return hex.EncodeToString(sums.SHA256[:])
	}
	return ""
}
