package find

import (
	"context"
	"slices"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// recordsTogether is how many records of reference data are looked into at a time.
const recordsTogether = 8192

// Persons looks for subjects in n records, of which identify gives use the identifiers. of is what hits have in common.
func Persons(ctx context.Context, n int, identify func(record int, use func(resolution.Identifier, string)) error, of Hit, s *Subjects, found Found) error {
	work, lookers := progress.Of(ctx), s.lookers()
	work.Expect(int64(n))
	for from := 0; from < n; from += recordsTogether {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		some := min(recordsTogether, n-from)
		errs := make([]error, some)
		hits := lookers.each(some, func(l *Looker, i int) []Hit {
			errs[i] = identify(from+i, func(kind resolution.Identifier, text string) {
				l.Note(string(kind), text != "" && l.Lists(suppression.Kind(kind), text))
			})
			if len(l.named) == 0 {
				return nil
			}
			hit := of
			hit.Row = int64(from + i + 1)
			return l.Hits(hit)
		})
		work.Done(int64(some))
		tell(found, hits)
		if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
			return errs[i]
		}
	}
	return nil
}
