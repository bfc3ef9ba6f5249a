package wire

import (
	"log/slog"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// WarnOfWords warns if words that are no known kind of organization have 1% of the rows.
func WarnOfWords(log *slog.Logger, words []orgtype.Count, rows int64) {
	if n, worth := orgtype.Notable(words, rows); worth {
		log.Warn("words of org_type are not known and count as providers; give one a kind with leadetl directory import --org-type WORD=KIND",
			"words", orgtype.Names(words), "rows", n, "share", figures.Share(n, rows))
	}
}
