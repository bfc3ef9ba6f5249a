package suggest

import "testing"

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"keep", "keep", 0}, {"kep", "keep", 1}, {"keep", "kep", 1},
		{"kitten", "sitting", 3}, {"flaw", "lawn", 2},
	} {
		if got := Edits(c.a, c.b); got != c.want {
			t.Errorf("Edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestName(t *testing.T) {
	known := []string{"run", "directory", "version", "header-name", "api-key-file", "in", "out"}
	for name, want := range map[string]string{
		"rnu":       `; did you mean "run"?`,
		"rn":        `; did you mean "run"?`,
		"direktory": `; did you mean "directory"?`,
		"verson":    `; did you mean "version"?`,
		"api-key":   `; did you mean "api-key-file"?`, // and not what takes fewer edits
		"dire":      `; did you mean "directory"?`,
		"dir":       "",
		"xyzzy":     "",
		"xn":        "", // another word, not a misspelling of run
		"rxn":       `; did you mean "run"?`,
		"rxx":       "",
		"input":     `; did you mean "in"?`,
		"ouput":     `; did you mean "out"?`,
		"outputs":   `; did you mean "out"?`,
		"outer":     `; did you mean "out"?`,
		"overall":   "",
	} {
		if got := Name(name, known); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
}
