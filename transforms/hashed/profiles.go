// Package hashed is the table of the profiles by which identifiers are hashed.
//
// The one thing to know before using it: an identifier has several forms, and so several hashes. A
// hash without its profile means nothing.
package hashed

import (
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Kind is the kind of an identifier.
type Kind string

// The kinds.
const (
	Email Kind = "email"
	Phone Kind = "phone"
)

// Profile is a form in which identifiers of a kind are hashed.
type Profile struct {
	Name  string
	Kind  Kind
	Email email.Profile // of an email
	Phone phone.Form    // of a phone
	// Column has the SHA-256 digests in a dataset; "" if none has them.
	Column string
	// Users are who hash so, and Source says where that stands, and as of when.
	Users, Source string
}

// Profiles are all of them, in the order of their columns.
var Profiles = []Profile{
	{
		Name: "plain", Kind: Email, Email: email.Plain, Column: "hem_sha256",
		Users: "Meta, Snap, TikTok, Criteo, X, LiveRamp, California DROP and most others", Source: "Meta, customer information parameters, 2026-01",
	},
	{
		Name: "uid2", Kind: Email, Email: email.UID2, Column: "hem_uid2_sha256_base64",
		Users: "UID2, EUID, The Trade Desk", Source: "unifiedid.com, normalization and encoding, 2026-08",
	},
	{
		Name: "google", Kind: Email, Email: email.Google, Column: "hem_google_sha256",
		Users: "Google Ads, DV360", Source: "Google Data Manager, formatters, 2026-08",
	},
	{
		Name: "google until 2026-08", Kind: Email, Email: email.GoogleUntil202608,
		Users: "older lists for Google", Source: "googleads/data-manager-python@5abbf5d, 2025-12",
	},
	{
		Name: "e164", Kind: Phone, Phone: phone.E164, Column: "phone_e164_sha256",
		Users: "Google, X, UID2, EUID", Source: "unifiedid.com, normalization and encoding, 2026-08",
	},
	{
		Name: "digits", Kind: Phone, Phone: phone.Digits, Column: "phone_digits_sha256",
		Users: "Meta, Snap, Pinterest", Source: "Meta, customer information parameters, 2026-01",
	},
	{
		Name: "last10", Kind: Phone, Phone: phone.Last10,
		Users: "California DROP", Source: "public summaries of its specification, 2026",
	},
}

// Of are the profiles of a kind that datasets have a column for, in the order of these.
func Of(kind Kind) (all []Profile) {
	for _, p := range Profiles {
		if p.Kind == kind && p.Column != "" {
			all = append(all, p)
		}
	}
	return all
}

// Names are those of the profiles of Of.
func Names(kind Kind) (all []string) {
	for _, p := range Of(kind) {
		all = append(all, p.Name)
	}
	return all
}

// Parse returns the profile of Of with a name.
func Parse(kind Kind, name string) (Profile, error) {
	for _, p := range Of(kind) {
		if p.Name == name {
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("unknown %s profile %q%s", kind, name, suggest.OneOf(name, Names(kind)))
}

// Base64 reports whether the column has base64 and not hex.
func (p Profile) Base64() bool { return strings.HasSuffix(p.Column, "_base64") }
