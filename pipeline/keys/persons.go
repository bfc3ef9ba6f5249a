package keys

import (
	"errors"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/profile"
)

// errIncomplete: a row has no identifier, and not all values of a person.
var errIncomplete = errors.New("incomplete")

// identifiers are the cells with identifiers of a batch.
func (k keyer) identifiers(in *sources.Batch, column int) *array.String {
	if !k.reading.Nameless {
		return in.Columns[column]
	}
	none := array.NewStringBuilder(memory.DefaultAllocator)
	defer none.Release()
	none.AppendNulls(in.Len())
	return none.NewStringArray()
}

// persons are the values of a person of each row, as JSON; "" without any.
func (k keyer) persons(in *sources.Batch, rows spread) []string {
	if k.reading.From == nil {
		return nil
	}
	all := make([]string, rows.identifiers.Len())
	has := map[string]string{}
	for i := range all {
		from := i
		if rows.from != nil {
			from = rows.from[i]
		}
		clear(has)
		for name, column := range k.reading.From {
			if cells := in.Columns[column]; !cells.IsNull(from) {
				has[name] = person.Canonical(name, cells.Value(from))
			}
		}
		if key := person.Key(has); key != noPerson {
			all[i] = key
		}
	}
	return all
}

// noPerson is the key of no values.
var noPerson = person.Key(nil)

// appendPerson makes the values of a person the key of a row without an identifier.
func (k keyer) appendPerson(b *columns.Batch, row int) error {
	key := b.Persons[row]
	switch has := len(person.Values(key)); {
	case has == 0:
		return profile.ErrEmpty
	case has < len(k.reading.From):
		return errIncomplete
	}
	b.Persons[row] = ""
	b.Keys.Data = append(b.Keys.Data, key...)
	return nil
}
