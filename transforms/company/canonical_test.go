package company

import "testing"

func TestCanonicalNeedsNoWork(t *testing.T) {
	for _, s := range []string{"bakery.example", "a-b.co", "c12.example", "1a.example", "sub.sub.mail.example"} {
		if !isCanonicalDomain(s) || domain(s) != s {
			t.Errorf("%q: canonical = %v, domain = %q; want true and the same", s, isCanonicalDomain(s), domain(s))
		}
	}
	for _, s := range []string{"network.example/company/acme", "linkedin.com/company/Acme-Inc", "a.example"} {
		if !isCanonicalPage(s) || networkURL(s) != s {
			t.Errorf("%q: canonical = %v, networkURL = %q; want true and the same", s, isCanonicalPage(s), networkURL(s))
		}
	}
}

// FuzzCanonical holds the short ways against the general ones.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		"bakery.example", "www.a.example", "A.example", "a..b", "-a.co", "a-.co", "ab--c.co", "xn--bcher-kva.example", "a.1", "a.1a",
		"1.2.3.4", "a", "a.", ".a", "network.example/company/acme", "n.example//x", "n.example/x/", "u@n.example/x", "n.example:80", "a_b.co",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if isCanonicalDomain(s) && domain(s) != s {
			t.Errorf("domain(%q) = %q, called canonical", s, domain(s))
		}
		if isCanonicalPage(s) && networkURL(s) != s {
			t.Errorf("networkURL(%q) = %q, called canonical", s, networkURL(s))
		}
	})
}
