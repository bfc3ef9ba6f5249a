package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every line is seen once, wherever blocks and lines end.
func TestEachLine(t *testing.T) {
	for _, c := range []struct {
		name      string
		lines     int
		pad       int // bytes added to each line
		lastEmpty bool
	}{
		{"header alone", 0, 0, true},
		{"no final newline", 3, 0, false},
		{"one block", 1000, 10, true},
		{"lines across blocks", 100_000, 17, true},
		{"lines that end with a block", 5 * blockSize / 64, 64 - len("00000000,\n"), true},
	} {
		var text strings.Builder
		text.WriteString("id,email")
		for i := range c.lines {
			fmt.Fprintf(&text, "\n%08d,%s", i, strings.Repeat("x", c.pad))
		}
		if c.lastEmpty {
			text.WriteString("\n")
		}
		name := filepath.Join(t.TempDir(), "in.csv")
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, workers := range []int{1, 3} {
			even := func() func([]byte) bool {
				n := 0
				return func([]byte) bool { n++; return workers == 1 && n%2 == 0 }
			}
			matches := int64(c.lines / 2)
			if workers > 1 {
				matches = 0
			}
			if got, found, err := eachLine(name, workers, even); err != nil || got != int64(c.lines) || found != matches {
				t.Errorf("%s, %d workers: got %d and %d matches, %v, want %d and %d", c.name, workers, got, found, err, c.lines, matches)
			}
		}
	}
}
