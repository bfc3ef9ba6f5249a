package order

import (
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
)

// classify says what an answer of a step means. row is that of the answer, in columns that stay.
func (s *Step) classify(o *Order, a purchase.Result, row resolution.AnswerRow) (k stepAnswer) {
	k = stepAnswer{state: answered, answer: a, row: row}
	k.answer.Found = resolution.AnswerRow{} // of memory that is used again
	if a.Refusal.Answered() {
		k.answer.Receipt = a.Refusal
	}
	switch {
	case a.Outcome == outcome.Skipped, a.Outcome == outcome.Failed && !a.Refusal.Answered(): // nothing is stored, so a later run may get an answer
		k.state = stopped
		k.skip, _, _ = strings.Cut(a.Reason, ":")
		return k
	case s.Verifies != "":
		k.accepted = a.Outcome == outcome.Matched && s.accepts(resolution.GroupEmail, row, a.Helpers) && s.accepts(resolution.GroupPhone, row, a.Helpers)
		return k
	case a.Outcome != outcome.Matched:
		return k
	}
	k.groups[0] = row.Values()
	for _, c := range s.conditions {
		if g := uint(1) << c.guards; k.groups[0]&g != 0 && !s.accepts(c.guards, row, a.Helpers) {
			k.groups[0], k.groups[1] = k.groups[0]&^g, k.groups[1]|g
		}
	}
	for n, column := range o.Want {
		if v := values.Wanted[column]; k.groups[0]>>v.Group&1 == 1 && v.Of(row) != "" {
			k.fills |= 1 << n
		}
	}
	return k
}

// Warnings say what Accept may not mean to refuse.
func (s *Step) Warnings() (warnings []string) {
	if types := s.Accept["phone_type"]; slices.Contains(types, "mobile") && !slices.Contains(types, "fixed_line_or_mobile") {
		warnings = append(warnings, "accept of phone_type has mobile alone: it refuses all numbers of the United States and Canada, whose plan "+
			"does not tell mobile from fixed lines; write [mobile, fixed_line_or_mobile]")
	}
	return warnings
}

// accepts reports whether the values of a group may be taken. A helper that is missing is not
// accepted.
func (s *Step) accepts(g resolution.Group, row resolution.AnswerRow, helpers map[string]string) bool {
	for _, c := range s.conditions {
		if c.guards != g {
			continue
		}
		text := helpers[c.helper]
		if c.column != nil {
			text = c.column.Of(row)
		}
		if !slices.Contains(c.accepts, text) || text == "" {
			return false
		}
	}
	return true
}
