package parquetfile

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// leaf reads the values of a stored column one by one.
type leaf struct {
	*element
	null bool                             // the column has no values: its type is NULL
	raw  bool                             // JSON takes the text without quotes
	text func(dst []byte, v value) []byte // appends a value as text

	chunk  chunk
	left   int64 // values of the chunk in later pages
	page   *page
	inPage int // values left in the page

	// For nested columns: the entries of the current row, and the level read
	// ahead.
	entries []entry
	at      int
	json    []byte
	ahead   entry
	loaded  bool // the repetition level in ahead is set
}

// entry is a value or a null of a nested column, with its levels.
type entry struct {
	definition, repetition int
	end                    int // end of its JSON
}

// entryBytes is the size of an entry when the size of a row is limited.
const entryBytes = 16

func newLeaf(e *element, memory *budget) (*leaf, error) {
	l := &leaf{element: e, chunk: chunk{leaf: e, memory: memory}}
	return l, l.setForm()
}

// open starts reading the column in a row group.
func (l *leaf) open(in io.ReaderAt, size int64, group *format.RowGroup) error {
	c := &group.Columns[l.index]
	if len(c.EncryptedColumnMetadata) > 0 || c.CryptoMetadata.Value != nil {
		return &unsupportedError{"encryption"}
	}
	l.left, l.inPage, l.loaded = c.MetaData.NumValues, 0, false
	return l.chunk.open(in, size, &c.MetaData)
}

var errShort = errors.New("the column ends before its row group does")

// more reads the next page after the current one is used up, and reports
// whether there is another value or null.
func (l *leaf) more() (bool, error) {
	for l.inPage == 0 {
		if l.left == 0 {
			return false, nil
		}
		p, err := l.chunk.next()
		if err != nil {
			return false, err
		}
		if int64(p.values) > l.left {
			return false, errHeader
		}
		l.page, l.inPage = p, p.values
		l.left -= int64(p.values)
	}
	return true, nil
}

// next returns the next value or null, with its levels.
func (l *leaf) next() (v value, definition, repetition int, err error) {
	l.inPage--
	definition = l.defined
	if l.page.repetition != nil {
		level, err := l.page.repetition.next()
		if err != nil || level > uint64(l.repeated) {
			return v, 0, 0, errors.Join(errPage, err)
		}
		repetition = int(level)
	}
	if l.page.definition != nil {
		level, err := l.page.definition.next()
		if err != nil || level > uint64(l.defined) {
			return v, 0, 0, errors.Join(errPage, err)
		}
		definition = int(level)
	}
	if definition == l.defined {
		v, err = l.page.decoder.next()
	}
	return v, definition, repetition, err
}

// appendNext appends the next value of a column that is not nested.
func (l *leaf) appendNext(dst []byte) (text []byte, present bool, err error) {
	if l.inPage == 0 {
		if more, err := l.more(); err != nil || !more {
			return dst, false, errors.Join(err, errShort)
		}
	}
	v, definition, _, err := l.next()
	if err != nil || definition < l.defined || l.null {
		return dst, false, err
	}
	if len(v.bytes) > maxValue {
		return dst, false, errTooLarge
	}
	return l.text(dst, v), true, nil
}

// loadRow reads the entries of the next row.
func (l *leaf) loadRow() error {
	l.entries, l.json, l.at = l.entries[:0], l.json[:0], 0
	for {
		more, err := l.more()
		if err != nil {
			return err
		}
		if !more {
			if len(l.entries) == 0 {
				return errShort
			}
			return nil
		}
		if len(l.entries) > 0 {
			if starts, err := l.rowStarts(); err != nil || starts {
				return err
			}
		}
		v, definition, repetition, err := l.nextAhead()
		if err != nil {
			return err
		}
		if definition == l.defined {
			if len(v.bytes) > maxValue {
				return errTooLarge
			}
			l.json = l.appendValue(l.json, v)
		}
		l.entries = append(l.entries, entry{definition, repetition, len(l.json)})
		if len(l.json)+entryBytes*len(l.entries) > maxValue {
			return errTooLarge
		}
	}
}

// rowStarts reports whether the next value or null begins a row.
func (l *leaf) rowStarts() (bool, error) {
	if l.page.repetition == nil {
		return true, nil
	}
	if !l.loaded {
		level, err := l.page.repetition.next()
		if err != nil || level > uint64(l.repeated) {
			return false, errors.Join(errPage, err)
		}
		l.ahead.repetition, l.loaded = int(level), true
	}
	return l.ahead.repetition == 0, nil
}

// nextAhead is next, but uses the repetition level that was read ahead, if
// there is one.
func (l *leaf) nextAhead() (v value, definition, repetition int, err error) {
	if !l.loaded {
		return l.next()
	}
	l.loaded = false
	levels := l.page.repetition
	l.page.repetition = nil
	v, definition, _, err = l.next()
	l.page.repetition = levels
	return v, definition, l.ahead.repetition, err
}

// level returns the definition level of the current entry, -1 after the last.
func (l *leaf) level() int {
	if l.at >= len(l.entries) {
		return -1
	}
	return l.entries[l.at].definition
}

// repeats reports whether the current entry is a further item of a list.
func (l *leaf) repeats(level int) bool {
	return l.at < len(l.entries) && l.entries[l.at].repetition >= level
}

// appendEntry appends the JSON of the current entry, which is not null.
func (l *leaf) appendEntry(dst []byte) []byte {
	from := 0
	if l.at > 0 {
		from = l.entries[l.at-1].end
	}
	return append(dst, l.json[from:l.entries[l.at].end]...)
}
