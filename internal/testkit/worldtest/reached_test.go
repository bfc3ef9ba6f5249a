package worldtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCoverage: a place is reached as often as the smallest block around it, in all profiles together.
func TestCoverage(t *testing.T) {
	const source = `package p

func f(n int) int {
	if n > 0 {
		return 1
	}
	return g(n)
}

func (s *S[T]) g(n int) int { return n }
`
	module := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(module, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("p.go", source)
	c := coverage{}
	c.read(t, write("one", "mode: count\nm/p.go:3.19,4.11 1 5\nm/p.go:4.11,6.3 1 2\nm/p.go:7.2,7.13 1 3\nm/p.go:10.29,10.41 1 0\n"), "m/")
	c.read(t, write("other", "mode: count\nm/p.go:4.11,6.3 1 4\n"), "m/")
	r := Reach{Packages: []string{""}, Rare: Branches{
		{"at all", "p.go", "func f(n int) int {\n\tif n"}, {"positive", "p.go", "return 1"}, {"other", "p.go", "return g("}, {"never", "p.go", "{ return n"},
	}}
	for i, p := range r.find(t, module) {
		if got, want := c.at(p), []int{5, 6, 3, 0}[i]; got != want {
			t.Errorf("%s: %d times, want %d", r.Rare[i][0], got, want)
		}
	}
	functions := r.functions(t, module)
	if f, g := functions["p.go f"], functions["p.go S.g"]; len(functions) != 2 || f.from.line != 3 || g.from.line != 10 {
		t.Errorf("functions: %v", functions)
	}
	if all := c.unreached(module, []string{"."}); len(all) != 1 || !strings.HasPrefix(all[0], "p.go:10 (1): func (s *S[T]) g(n int)") {
		t.Errorf("not reached: %q", all)
	}
}
