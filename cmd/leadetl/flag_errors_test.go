package main

import "testing"

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"keep", "keep", 0}, {"kep", "keep", 1}, {"keep", "kep", 1},
		{"kitten", "sitting", 3}, {"flaw", "lawn", 2},
	} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestGuess(t *testing.T) {
	known := []string{"run", "directory", "version", "header-name", "api-key-file"}
	for name, want := range map[string]string{
		"rnu":       `; did you mean "run"?`,
		"direktory": `; did you mean "directory"?`,
		"verson":    `; did you mean "version"?`,
		"api-key":   `; did you mean "api-key-file"?`, // and not what takes fewer edits
		"dire":      `; did you mean "directory"?`,
		"dir":       "",
		"xyzzy":     "",
	} {
		if got := guess(name, known); got != want {
			t.Errorf("guess(%q) = %q, want %q", name, got, want)
		}
	}
}
