package nullword_test

import (
	"testing"

	"github.com/leadetl/leadetl/internal/nullword"
)

func TestIs(t *testing.T) {
	for s, want := range map[string]bool{
		"null": true, "NULL": true, "None": true, "n/a": true, "N/A": true, "undefined": true, "-": true,
		"": false, "na": false, "nulls": false, "--": false, "none at all": false, " null": false,
	} {
		if got := nullword.Is(s); got != want {
			t.Errorf("Is(%q) = %v, want %v", s, got, want)
		}
		if got := nullword.Is([]byte(s)); got != want {
			t.Errorf("Is([]byte(%q)) = %v, want %v", s, got, want)
		}
	}
}
