package directory

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// searchFile is the searches of one import, mapped. Rows are sorted by moment,
// the last first, then by lead; a lead's number is its place among the
// lead ids. A code is a place in a dictionary, and dictionaries are sorted, so
// that code 0 is the empty text where there is one.
type searchFile struct {
	sections *sections
	left     leftOut

	at                                        []int64 // unix microseconds
	lead, keyword, email, city, zip, jobTitle []uint32
	state                                     []uint16 // two bytes of text, 0 for none
	leadType                                  []uint8  // leadTypes

	leadIDs  [][16]byte
	leadKeys texts // a byte of leadByProfile or leadByEmail and the key
	emails   texts // of searches whose lead has another key; 0 is none

	keywords     texts // in lower case, single spaces
	keywordWords lists // the words of each, in order
	words        texts // sorted
	wordKeywords lists // the keywords with each, ascending

	cities, zips, jobTitles dictionary
}

// dictionary holds distinct texts as they were written, sorted by their
// folded form and then as they are.
type dictionary struct{ raw, folded texts }

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

// dayStart is midnight UTC of t's day, in microseconds.
func dayStart(t time.Time) int64 { return t.UTC().Truncate(24 * time.Hour).UnixMicro() }

func openSearches(path string) (*searchFile, error) {
	s, err := openSections(path)
	if err != nil {
		return nil, err
	}
	f := &searchFile{sections: s}
	if err := f.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), s.Close())
	}
	return f, nil
}

func (f *searchFile) Close() error { return f.sections.Close() }

// read finds the columns. It touches none of them: what they hold is for
// verify to check.
func (f *searchFile) read() error {
	r := sectionReader{s: f.sections}
	f.at = read[int64](&r, "searched_at", -1)
	rows := len(f.at)
	f.lead = read[uint32](&r, "lead", rows)
	f.keyword = read[uint32](&r, "keyword", rows)
	f.email = read[uint32](&r, "email", rows)
	f.city = read[uint32](&r, "city", rows)
	f.zip = read[uint32](&r, "zip_code", rows)
	f.jobTitle = read[uint32](&r, "job_title", rows)
	f.state = read[uint16](&r, "state", rows)
	f.leadType = read[uint8](&r, "lead_type", rows)
	f.leadIDs = read[[16]byte](&r, "lead_id", -1)
	f.leadKeys = r.texts("lead_key", len(f.leadIDs))
	f.emails = r.texts("email_text", -1)
	f.keywords = r.texts("keyword_text", -1)
	f.keywordWords = r.lists("keyword_words", max(f.keywords.len(), 0))
	f.words = r.texts("word_text", -1)
	f.wordKeywords = r.lists("word_keywords", max(f.words.len(), 0))
	f.cities = r.dictionary("city")
	f.zips = r.dictionary("zip_code")
	f.jobTitles = r.dictionary("job_title")
	return r.err
}

// sectionReader keeps the first error.
type sectionReader struct {
	s   *sections
	err error
}

func read[T fixed](r *sectionReader, name string, count int) []T {
	column, err := get[T](r.s, name, count)
	r.err = cmp.Or(r.err, err)
	return column
}

// offsets are those of count lists, or of at least none.
func (r *sectionReader) offsets(name string, count int) []uint64 {
	if count >= 0 {
		count++
	}
	offsets := read[uint64](r, name+"_offsets", count)
	if len(offsets) == 0 {
		r.err = cmp.Or(r.err, fmt.Errorf("section %s_offsets is empty", name))
	}
	return offsets
}

func (r *sectionReader) texts(name string, count int) texts {
	return texts{r.offsets(name, count), read[uint8](r, name, -1)}
}

func (r *sectionReader) lists(name string, count int) lists {
	return lists{r.offsets(name, count), read[uint32](r, name, -1)}
}

func (r *sectionReader) dictionary(name string) dictionary {
	raw := r.texts(name+"_text", -1)
	return dictionary{raw, r.texts(name+"_folded", max(raw.len(), 0))}
}

// Sections of texts and lists are written by these.

func putTexts(w *sectionWriter, name string, t texts) {
	column(w, name+"_offsets", t.offsets)
	column(w, name, t.bytes)
}

func putLists(w *sectionWriter, name string, l lists) {
	column(w, name+"_offsets", l.offsets)
	column(w, name, l.members)
}
