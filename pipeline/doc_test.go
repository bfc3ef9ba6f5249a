package pipeline_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestWords: each word of doc.go is used elsewhere in the code, and each test that it
// names exists.
func TestWords(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var code, tests strings.Builder
	err = fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || name == "pipeline/doc.go" {
			return err
		}
		to := &code
		if strings.HasSuffix(name, "_test.go") {
			to = &tests
		}
		data, err := os.ReadFile("../" + name)
		to.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`(?m)^//   - ([a-z ]+): `).FindAllSubmatch(doc, -1)
	if len(words) < 25 {
		t.Errorf("only %d words are found", len(words))
	}
	for _, word := range words {
		used := regexp.MustCompile(`(?i)\b` + strings.ReplaceAll(string(word[1]), " ", "[ \\t\\n/]*"))
		if !used.MatchString(code.String()) {
			t.Errorf("the code does not use the word %q", word[1])
		}
	}
	for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(string(doc), -1) {
		if !strings.Contains(tests.String(), "func "+name+"(") {
			t.Errorf("there is no %s", name)
		}
	}
}
