package find

import (
	"path"
	"strings"

	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// look looks at a text of a column.
type look func(l *Looker, text string) bool

// byForm looks at texts whose kind nothing says.
func byForm(l *Looker, text string) bool { return l.Names(text) }

// asLine looks at malformed lines.
func asLine(l *Looker, text string) bool { return l.NamesInLine(text) }

func ofKind(kind suppression.Kind) look {
	return func(l *Looker, text string) bool { return l.Lists(kind, text) }
}

// columnsOf says how the columns of a dataset are looked at.
type columnsOf struct {
	identifier suppression.Kind  // of the operation; empty for searches, and if it is not known
	column     string            // of the input that rows are resolved by
	inputs     map[string]string // as that of Manifest.KeptFrom
	known      bool              // there is a manifest
}

func newColumnsOf(m *sinks.Manifest) columnsOf {
	if m == nil {
		return columnsOf{}
	}
	op := resolution.Operation(m.Operation)
	c := columnsOf{identifier: suppression.Kind(op.Identifier()), inputs: m.KeptFrom(), known: true}
	if !op.IsKeyword() {
		c.column = m.Identifier()
	}
	return c
}

// of returns how a column of a file in a folder of the dataset is looked at; nil if it has no identifiers.
func (c columnsOf) of(folder, column string) look {
	switch folder {
	case sinks.RejectsFolder:
		if column == "raw_line" {
			return asLine
		}
		return nil
	case sinks.SuppressedFolder:
		if column == "id" {
			return byForm
		}
		return nil
	case sinks.AskedFolder:
		if column == "key" {
			return byForm
		}
		return nil
	}
	if folder == sinks.ChangesFolder || !c.known { // leadetl changes writes a folder of its own
		column = strings.TrimPrefix(column, "was_")
	}
	if input, kept := c.inputs[column]; kept {
		return c.ofInput(input)
	}
	if column == "key" {
		if c.identifier != "" {
			return ofKind(c.identifier)
		}
		return byForm
	}
	if kind := keys.KindOfAnswer(column); kind != "" {
		return ofKind(kind)
	}
	if c.known {
		return nil
	}
	return c.ofInput(strings.TrimPrefix(column, "in_"))
}

// ofInput is of a column that is kept from the input, by its name there: as a run compares it.
func (c columnsOf) ofInput(input string) look {
	if c.column != "" && strings.EqualFold(input, c.column) {
		return ofKind(c.identifier)
	}
	if kind, known := keys.KindOfColumn(input); known {
		return ofKind(kind)
	}
	return nil
}

// shown is the name of a file without the values of columns that have identifiers.
func (c columnsOf) shown(name string) string {
	elements := strings.Split(name, "/")
	for i, e := range elements {
		if column, _, is := strings.Cut(e, "="); is && c.of("", column) != nil {
			elements[i] = column + "=…"
		}
	}
	return path.Join(elements...)
}
