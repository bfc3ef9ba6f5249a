package job

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// A list with more columns than a dataset keeps is refused by number, and read where the columns
// are named.
func TestTooManyColumns(t *testing.T) {
	name := filepath.Join(t.TempDir(), "l.jsonl")
	var text strings.Builder
	text.WriteString(`{"email":"a@x.example"`)
	for i := range maxKept {
		fmt.Fprintf(&text, `,"k%d":1`, i)
	}
	if err := os.WriteFile(name, []byte(text.String()+"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := sources.Open(t.Context(), []string{name}, sources.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	j := Job{Operation: resolution.EmailToHEM, IDColumn: "email"}
	var refused *Error
	if _, err := ChooseColumns(j, list, Source{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "has 10001 columns, and a dataset keeps at most 10000") {
		t.Errorf("all columns: %v", err)
	}
	j.Select = []string{"email", "k9999"}
	if _, err := ChooseColumns(j, list, Source{}); err != nil {
		t.Errorf("two columns: %v", err)
	}
}
