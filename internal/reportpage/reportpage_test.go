package reportpage

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden pages")

// TestGolden compares the pages of some runs with what they were.
func TestGolden(t *testing.T) {
	reports, err := filepath.Glob("testdata/*.json")
	if err != nil || len(reports) == 0 {
		t.Fatal(reports, err)
	}
	for _, name := range reports {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		page, err := Render(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden := strings.TrimSuffix(name, ".json") + ".html"
		if *update {
			if err := os.WriteFile(golden, page, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(page, want) {
			t.Errorf("the page of %s is another; look at it after go test ./internal/reportpage -update", name)
		}
	}
}
