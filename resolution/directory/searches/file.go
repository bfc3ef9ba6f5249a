// Package searches keeps the keyword searches of a directory: who searched for what, when and
// where.
package searches

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// File has the searches of an import. Rows are sorted by time, the latest first, and then by
// lead. The number of a lead is its index among the lead ids. A code is an index in a
// dictionary. Dictionaries are sorted, so that code 0 is the empty text if there is one.
type File struct {
	file *keyed.Columns

	// LeaveOut leaves leads out; nil leaves none out. Set it before the first search,
	// which calls it for every lead: that takes seconds for a million leads.
	LeaveOut LeaveOut
	excluded excluded

	at                                        []int64 // Unix microseconds
	lead, keyword, email, city, zip, jobTitle []uint32
	state                                     []uint16 // two bytes of text, 0 for none
	leadType                                  []uint8  // leadTypes

	leadIDs  [][16]byte
	leadKeys keyed.Texts // leadByProfile or leadByEmail, and the key
	emails   keyed.Texts // of searches whose lead has another key; 0 means none

	keywords     keyed.Texts // in lower case, single spaces
	keywordWords keyed.Lists // the words of each, in order
	words        keyed.Texts // sorted
	wordKeywords keyed.Lists // the keywords with each, ascending

	cities, zips, jobTitles dictionary
}

// dictionary has distinct texts in their original spelling, sorted by their folded form and then
// as they are.
type dictionary struct{ raw, folded keyed.Texts }

// leadTypes are the numbers of lead types.
var leadTypes = []string{"", "b2b", "b2c"}

func stateCode(state string) uint16 {
	if len(state) != 2 {
		return 0
	}
	return uint16(state[0])<<8 | uint16(state[1])
}

func stateText(code uint16) string {
	if code == 0 {
		return ""
	}
	return string([]byte{byte(code >> 8), byte(code)})
}

// dayStart returns midnight UTC of the day of t, in microseconds.
func dayStart(t time.Time) int64 { return t.UTC().Truncate(24 * time.Hour).UnixMicro() }

// Open opens a file of Import.
func Open(in disk.Folder, name string) (*File, error) {
	s, err := keyed.OpenColumns(in, name)
	if err != nil {
		return nil, err
	}
	f := &File{file: s}
	if err := f.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", in.Path(name), err), s.Close())
	}
	return f, nil
}

// Close closes the file. Use nothing of it afterwards.
func (f *File) Close() error { return f.file.Close() }

// read finds the columns without reading them. Verify checks their values.
func (f *File) read() error {
	r := keyed.ColumnReader{Columns: f.file}
	f.at = keyed.Read[int64](&r, "searched_at", -1)
	rows := len(f.at)
	f.lead = keyed.Read[uint32](&r, "lead", rows)
	f.keyword = keyed.Read[uint32](&r, "keyword", rows)
	f.email = keyed.Read[uint32](&r, "email", rows)
	f.city = keyed.Read[uint32](&r, "city", rows)
	f.zip = keyed.Read[uint32](&r, "zip_code", rows)
	f.jobTitle = keyed.Read[uint32](&r, "job_title", rows)
	f.state = keyed.Read[uint16](&r, "state", rows)
	f.leadType = keyed.Read[uint8](&r, "lead_type", rows)
	f.leadIDs = keyed.Read[[16]byte](&r, "lead_id", -1)
	f.leadKeys = r.Texts("lead_key", len(f.leadIDs))
	f.emails = r.Texts("email_text", -1)
	f.keywords = r.Texts("keyword_text", -1)
	f.keywordWords = r.Lists("keyword_words", max(f.keywords.Len(), 0))
	f.words = r.Texts("word_text", -1)
	f.wordKeywords = r.Lists("word_keywords", max(f.words.Len(), 0))
	f.cities = readDictionary(&r, "city")
	f.zips = readDictionary(&r, "zip_code")
	f.jobTitles = readDictionary(&r, "job_title")
	return r.Err
}

func readDictionary(r *keyed.ColumnReader, name string) dictionary {
	raw := r.Texts(name+"_text", -1)
	return dictionary{raw, r.Texts(name+"_folded", max(raw.Len(), 0))}
}

// Records is the number of leads and of other emails in their searches.
func (f *File) Records() int { return f.leadKeys.Len() + f.emails.Len() }

// Identify gives use the key of a lead, or one of those emails.
func (f *File) Identify(record int, use func(resolution.Identifier, string)) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	if email := record - f.leadKeys.Len(); email >= 0 {
		use(resolution.Email, string(f.emails.At(uint32(email))))
		return nil
	}
	key, kind := f.leadKeys.At(uint32(record)), resolution.Email
	if key[0] == leadByProfile {
		kind = resolution.NetworkURL
	}
	use(kind, string(key[1:]))
	return nil
}
