package sqlite

import (
	"errors"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func TestOrganizationNames(t *testing.T) {
	s := serve(t, t.TempDir())
	organization(t, s, "Acme", 0)
	for _, c := range []struct {
		name, given string
		want        string
		err         error
	}{
		{"plain", "Beta", "Beta", nil},
		{"trimmed", " \tGamma GmbH\n", "Gamma GmbH", nil},
		{"any script", "Žluťoučký kůň 株式会社", "Žluťoučký kůň 株式会社", nil},
		{"another case is another name", "acme", "acme", nil},
		{"100 characters", strings.Repeat("ü", 100), strings.Repeat("ü", 100), nil},
		{"101 characters", strings.Repeat("ü", 101), "", resolution.ErrInvalid},
		{"empty", "", "", resolution.ErrInvalid},
		{"space alone", " \n", "", resolution.ErrInvalid},
		{"a line break", "a\nb", "", resolution.ErrInvalid},
		{"no text", "a\xff", "", resolution.ErrInvalid},
		{"an organization's id", "org_0123456789abcdef", "", resolution.ErrInvalid},
		{"not quite one", "org_0123456789abcde", "org_0123456789abcde", nil},
		{"taken", "Acme", "", state.ErrExists},
		{"taken once trimmed", " Acme ", "", state.ErrExists},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := s.CreateOrganization(t.Context(), c.given, 0, nil, noon)
			if !errors.Is(err, c.err) || o.Name != c.want {
				t.Fatalf("%q: got %q, %v; want %q, %v", c.given, o.Name, err, c.want, c.err)
			}
			if err != nil {
				return
			}
			for _, by := range []string{o.Name, o.Public, " " + o.Public} {
				if got, err := s.FindOrganization(t.Context(), by); err != nil || got != o {
					t.Errorf("by %q: got %v, %v; want %v", by, got, err, o)
				}
			}
		})
	}
	if _, err := s.FindOrganization(t.Context(), "nobody"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a stranger: %v, want ErrNotFound", err)
	}
}

func TestCreateOrganization(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, credits := range []int64{-1, creditLimit + 1} {
		if _, err := s.CreateOrganization(t.Context(), "Acme", credits, nil, noon); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%d credits: %v, want ErrInvalid", credits, err)
		}
	}
	b, err := s.CreateOrganization(t.Context(), "B", 0, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.CreateOrganization(t.Context(), "A", 7, []byte("sealed"), noon)
	if err != nil {
		t.Fatal(err)
	}
	if !isPublicID("org_", a.Public) || a.Public == b.Public || !a.Created.Equal(noon) {
		t.Errorf("%+v and %+v", a, b)
	}
	all, err := s.Organizations(t.Context())
	if err != nil || len(all) != 2 || all[0] != (state.Account{Organization: a, Balance: state.Balance{Available: 7}}) || all[1] != (state.Account{Organization: b, Balance: state.Balance{}}) {
		t.Errorf("got %+v (%v), want A with 7 credits and B with none", all, err)
	}
	if n := audit(t, s); n != 1 {
		t.Errorf("%d lines in the ledger, want the one grant", n)
	}
	if secrets, err := s.Secrets(t.Context(), a.ID, noon); err != nil || len(secrets) != 1 || string(secrets[0].Sealed) != "sealed" {
		t.Errorf("secrets %+v (%v)", secrets, err)
	}
}
