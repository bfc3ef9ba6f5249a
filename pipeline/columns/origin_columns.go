package columns

import (
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/sinks/schema"
)

// originSuffix ends the name of the column with the resolver that a wanted column is from.
const originSuffix = "_answered_by"

// SkippedColumn is the column with the resolvers that were passed over.
const SkippedColumn = "resolvers_skipped"

// IsOrigin reports whether one of a dataset's own columns names the resolver that another is from.
func IsOrigin(column string) bool { return strings.HasSuffix(column, originSuffix) }

// originColumns is the last block of a job with several resolvers.
func originColumns(s Settings) (columns []schema.Column) {
	for _, wanted := range s.Want {
		columns = append(columns, schema.Repeating(wanted+originSuffix))
	}
	if s.NotesSkipped {
		columns = append(columns, schema.Repeating(SkippedColumn))
	}
	return columns
}

// noteOrigins sets Want and NotesSkipped as they are for a dataset with these columns.
func (s *Settings) noteOrigins(own []schema.Column) {
	for _, c := range own {
		if of, is := strings.CutSuffix(c.Name, originSuffix); is && CanWant(*s, of) {
			s.Want = append(s.Want, of)
		}
		s.NotesSkipped = s.NotesSkipped || c.Name == SkippedColumn
	}
}

func originMeaning(column string) (m meaning, known bool) {
	if column == SkippedColumn {
		return meaning{Text: "resolvers that were passed over, and why: NAME:reason, separated by ;", Null: "none", From: "the run", Form: "text, never empty"}, true
	}
	of, known := strings.CutSuffix(column, originSuffix)
	return meaning{Text: "resolver that " + of + " is from", Null: "no " + of, From: "the run", Form: "text, never empty"}, known
}

// originFiller builds that block.
type originFiller struct {
	wanted  []*wordColumn
	skipped *wordColumn // nil if it is not among the columns
}

func newOriginFiller(s Settings) *originFiller {
	f := &originFiller{}
	for range s.Want {
		f.wanted = append(f.wanted, newWordColumn())
	}
	if s.NotesSkipped {
		f.skipped = newWordColumn()
	}
	return f
}

func (f *originFiller) columns() int {
	n := len(f.wanted)
	if f.skipped != nil {
		n++
	}
	return n
}

func (f *originFiller) fill(b *Batch, to *blocks) {
	n := b.Len()
	origins := b.Origins
	if origins == nil { // nobody was asked
		origins = make([]Origin, n)
	}
	for i, column := range f.wanted {
		to.add(func() arrow.Array {
			return column.from(n, func(row int) string {
				if i >= len(origins[row].Wanted) {
					return ""
				}
				return origins[row].Wanted[i]
			})
		})
	}
	if f.skipped != nil {
		to.add(func() arrow.Array { return f.skipped.from(n, func(row int) string { return origins[row].Skipped }) })
	}
}

// CanWant reports whether resolvers can be asked for the sake of a column.
func CanWant(s Settings, column string) bool {
	return slices.ContainsFunc(blockColumns(s), func(c schema.Column) bool { return c.Name == column })
}
