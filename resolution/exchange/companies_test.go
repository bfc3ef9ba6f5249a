package exchange

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// TestCompanies: the memory of known companies has a bound.
func TestCompanies(t *testing.T) {
	var k Companies
	about := strings.Repeat("x", 1000)
	for n := range maxCompanyBytes / 1000 {
		k.Of(fmt.Sprint(n, about), func() *resolution.Company { return &resolution.Company{About: about} })
	}
	if len(k.known) > maxCompanyBytes/2000 || k.bytes > maxCompanyBytes+2500 {
		t.Errorf("%d companies are known, with %d bytes", len(k.known), k.bytes)
	}
}
