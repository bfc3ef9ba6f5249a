package columns

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/leadetl/leadetl/resolution"
)

// The query in the meaning of credits counts each answer once, whatever its rows are.
func TestCreditsOnce(t *testing.T) {
	text := regexp.MustCompile(`SELECT .* AS once`).FindString(meaningOf("credits", fixedColumns(false)).Text)
	for _, c := range []struct {
		name      string
		operation resolution.Operation
		rows      string
		want      int64
	}{
		{"rows with one key", resolution.Enrichment, "('a', 1, 2), ('a', 1, 2), ('b', 1, 2)", 4},
		{"a rejected row, a row without an answer, a free one", resolution.Enrichment, "(NULL, 1, NULL), ('a', 1, NULL), ('b', 1, 0), ('c', 1, 2)", 2},
		{"leads of pages of a search", resolution.KeywordToLead, "('s', 1, 5), ('s', 1, 5), ('s', 2, 3), ('t', 1, 5)", 13},
		{"a search without leads", resolution.KeywordToLead, "('s', NULL, 1), ('t', 2, 5)", 6},
		{"the count of a search", resolution.KeywordToLeadCount, "('s', NULL, 1), ('s', NULL, 1)", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "leads"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec("CREATE TABLE leads (key TEXT, page INTEGER, credits INTEGER); INSERT INTO leads VALUES " + c.rows); err != nil {
				t.Fatal(err)
			}
			asked := text
			if c.operation.IsKeyword() {
				asked = strings.Replace(text, "GROUP BY key", "GROUP BY key, page", 1)
			}
			got := int64(-1)
			if err := db.QueryRow(asked).Scan(&got); err != nil || got != c.want {
				t.Errorf("%s is %d, %v, want %d", asked, got, err, c.want)
			}
		})
	}
}
