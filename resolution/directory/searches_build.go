package directory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/resolution"
)

// What a lead is known by: a byte in front of the key.
const (
	leadByProfile = 'n'
	leadByEmail   = 'e'
)

// errTooMany: numbers of rows and texts have 31 bits.
var errTooMany = fmt.Errorf("%w: more than 2,147,483,647 searches", resolution.ErrInvalid)

// leadIDOf is the number every search of one person has, on any machine and in
// any import: the first half of a SHA-256 over a text nothing else is hashed
// with. A person is who has a profile address, or where a search names none an
// email address; one who is named by either in two searches is two leads, as
// what joins them is among the people, who come and go without the searches.
func leadIDOf(key string) (id [16]byte) {
	of := "network_url"
	if key[0] == leadByEmail {
		of = "email"
	}
	sum := sha256.Sum256([]byte("leadetl/lead_id/1\x00" + of + "\x00" + key[1:]))
	copy(id[:], sum[:])
	return id
}

// searchBuilder turns searches in any order into a searchFile. Its heap holds
// some thirty bytes for each distinct text and, at the end, sixteen for each
// search.
type searchBuilder struct {
	path                                      string
	at                                        *spool[int64]
	lead, keyword, email, city, zip, jobTitle *spool[uint32]
	state                                     *spool[uint16]
	leadType                                  *spool[uint8]

	leadIDs                                              *spool[[16]byte]
	leads, emails, keywords, cities, zipCodes, jobTitles *lexicon

	open []io.Closer
}

type closeFunc func() error

func (f closeFunc) Close() error { return f() }

func newSearchBuilder(path string) (*searchBuilder, error) {
	b := &searchBuilder{path: path}
	err := errors.Join(
		openSpool(b, &b.at), openSpool(b, &b.lead), openSpool(b, &b.keyword), openSpool(b, &b.email), openSpool(b, &b.city),
		openSpool(b, &b.zip), openSpool(b, &b.jobTitle), openSpool(b, &b.state), openSpool(b, &b.leadType), openSpool(b, &b.leadIDs),
		b.lexicon(&b.leads), b.lexicon(&b.emails), b.lexicon(&b.keywords), b.lexicon(&b.cities), b.lexicon(&b.zipCodes), b.lexicon(&b.jobTitles))
	if err == nil {
		_, _, err = b.emails.code("") // 0
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func openSpool[T fixed](b *searchBuilder, into **spool[T]) error {
	s, err := newSpool[T](b.path)
	if err == nil {
		*into = s
		b.open = append(b.open, closeFunc(s.close))
	}
	return err
}

func (b *searchBuilder) lexicon(into **lexicon) error {
	l, err := newLexicon(b.path)
	if l != nil {
		*into = l
		b.open = append(b.open, closeFunc(l.close))
	}
	return err
}

// close gives the spools back.
func (b *searchBuilder) close() error {
	var errs []error
	for _, c := range b.open {
		errs = append(errs, c.Close())
	}
	b.open = nil
	return errors.Join(errs...)
}

// add takes one search.
func (b *searchBuilder) add(s searchCells) error {
	if b.at.n == math.MaxInt32 {
		return errTooMany
	}
	key, email := string(leadByProfile)+s.person, s.email
	if s.person == "" {
		key, email = string(leadByEmail)+s.email, ""
	}
	lead, added, err := b.leads.code(key)
	if added {
		err = errors.Join(err, b.leadIDs.add(leadIDOf(key)))
	}
	if err != nil {
		return err
	}
	if err := errors.Join(b.at.add(s.at), b.lead.add(lead)); err != nil {
		return err
	}
	for _, c := range []struct {
		of   *lexicon
		text string
		into *spool[uint32]
	}{
		{b.keywords, s.keyword, b.keyword},
		{b.emails, email, b.email},
		{b.cities, s.city, b.city},
		{b.zipCodes, s.zip, b.zip},
		{b.jobTitles, s.jobTitle, b.jobTitle},
	} {
		code, _, err := c.of.code(c.text)
		if err != nil {
			return err
		}
		if err := c.into.add(code); err != nil {
			return err
		}
	}
	return errors.Join(b.state.add(stateCode(s.state)), b.leadType.add(uint8(slices.Index(leadTypes, s.leadType))))
}

// write makes the file under its temporary name, for seal to put in place.
func (b *searchBuilder) write(ctx context.Context) (err error) {
	f, err := os.Create(atomicfile.TempName(b.path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := newSectionWriter(f)
	for _, step := range []func(*sectionWriter) error{b.writeRows, b.writeKeywords} {
		if err := step(w); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return w.finish()
}

// place is where a search goes.
type place struct {
	at        int64
	lead, row uint32
}

func (b *searchBuilder) writeRows(w *sectionWriter) error {
	leads, err := b.writeLeads(w)
	if err != nil {
		return err
	}
	order, err := b.order(w, leads)
	if err != nil {
		return err
	}
	emails, err := b.emails.read()
	if err != nil {
		return err
	}
	putTexts(w, "email_text", emails)
	if err := errors.Join(gather(w, "keyword", b.keyword, order, nil), gather(w, "email", b.email, order, nil),
		gather(w, "state", b.state, order, nil), gather(w, "lead_type", b.leadType, order, nil)); err != nil {
		return err
	}
	for _, d := range []struct {
		name  string
		texts *lexicon
		codes *spool[uint32]
	}{
		{"city", b.cities, b.city},
		{"zip_code", b.zipCodes, b.zip},
		{"job_title", b.jobTitles, b.jobTitle},
	} {
		ranks, err := writeDictionary(w, d.name, d.texts)
		if err != nil {
			return err
		}
		if err := gather(w, d.name, d.codes, order, ranks); err != nil {
			return err
		}
	}
	return nil
}

// writeLeads numbers the leads anew, by their id. The result is the new number
// of each.
func (b *searchBuilder) writeLeads(w *sectionWriter) (ranks []uint32, err error) {
	keys, err := b.leads.read()
	if err != nil {
		return nil, err
	}
	ids, err := b.leadIDs.read()
	if err != nil {
		return nil, err
	}
	type lead struct {
		high, low uint64
		code      uint32
	}
	leads := make([]lead, len(ids))
	for i, id := range ids {
		leads[i] = lead{binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]), uint32(i)}
	}
	slices.SortFunc(leads, func(a, b lead) int { return cmp.Or(cmp.Compare(a.high, b.high), cmp.Compare(a.low, b.low)) })
	ranks = make([]uint32, len(ids))
	begin[[16]byte](w, "lead_id")
	for rank, l := range leads {
		ranks[l.code] = uint32(rank)
		put(w, ids[l.code])
	}
	var end uint64
	begin[uint64](w, "lead_key_offsets")
	put(w, end)
	for _, l := range leads {
		end += uint64(len(keys.at(l.code)))
		put(w, end)
	}
	begin[uint8](w, "lead_key")
	for _, l := range leads {
		put(w, keys.at(l.code)...)
	}
	return ranks, nil
}

// order writes the columns the searches are sorted by. The result is the
// source's number of each search in their order.
func (b *searchBuilder) order(w *sectionWriter, leads []uint32) ([]uint32, error) {
	at, err := b.at.read()
	if err != nil {
		return nil, err
	}
	lead, err := b.lead.read()
	if err != nil {
		return nil, err
	}
	places := make([]place, len(at))
	for i := range places {
		places[i] = place{at[i], leads[lead[i]], uint32(i)}
	}
	// Of one lead's searches at one moment, the first line is the first.
	slices.SortFunc(places, func(a, b place) int {
		if a.at != b.at {
			return cmp.Compare(b.at, a.at)
		}
		return cmp.Or(cmp.Compare(a.lead, b.lead), cmp.Compare(a.row, b.row))
	})
	begin[int64](w, "searched_at")
	for _, p := range places {
		put(w, p.at)
	}
	begin[uint32](w, "lead")
	for _, p := range places {
		put(w, p.lead)
	}
	order := make([]uint32, len(places))
	for i, p := range places {
		order[i] = p.row
	}
	return order, errors.Join(b.at.close(), b.lead.close())
}

// gather writes a column in the new order, its codes replaced by their ranks
// if there are any, and gives the spool back.
func gather[T uint8 | uint16 | uint32](w *sectionWriter, name string, from *spool[T], order []uint32, ranks []T) error {
	column, err := from.read()
	if err != nil {
		return err
	}
	begin[T](w, name)
	for _, row := range order {
		code := column[row]
		if ranks != nil {
			code = ranks[code]
		}
		put(w, code)
	}
	return from.close()
}

// writeDictionary writes texts sorted by their folded form; the result is the
// new code of each.
func writeDictionary(w *sectionWriter, name string, l *lexicon) (ranks []uint32, err error) {
	raw, err := l.read()
	if err != nil {
		return nil, err
	}
	type term struct {
		folded string
		code   uint32
	}
	terms := make([]term, raw.len())
	for i := range terms {
		terms[i] = term{fold(string(raw.at(uint32(i)))), uint32(i)}
	}
	slices.SortFunc(terms, func(a, b term) int {
		return cmp.Or(strings.Compare(a.folded, b.folded), bytes.Compare(raw.at(a.code), raw.at(b.code)))
	})
	ranks = make([]uint32, len(terms))
	sorted, folded := texts{offsets: []uint64{0}}, texts{offsets: []uint64{0}}
	for rank, t := range terms {
		ranks[t.code] = uint32(rank)
		sorted = sorted.with(raw.at(t.code))
		folded = folded.with([]byte(t.folded))
	}
	putTexts(w, name+"_text", sorted)
	putTexts(w, name+"_folded", folded)
	return ranks, l.close()
}

// with is t and one more text.
func (t texts) with(text []byte) texts {
	t.bytes = append(t.bytes, text...)
	return texts{append(t.offsets, uint64(len(t.bytes))), t.bytes}
}

// writeKeywords writes the keywords and which words are where.
func (b *searchBuilder) writeKeywords(w *sectionWriter) error {
	keywords, err := b.keywords.read()
	if err != nil {
		return err
	}
	vocabulary := map[string]uint32{} // in the order met
	var met []string
	forward := lists{offsets: []uint64{0}}
	for i := range keywords.len() {
		for _, word := range words(string(keywords.at(uint32(i)))) {
			code, ok := vocabulary[word]
			if !ok {
				code = uint32(len(met))
				word = strings.Clone(word)
				vocabulary[word] = code
				met = append(met, word)
			}
			forward.members = append(forward.members, code)
		}
		forward.offsets = append(forward.offsets, uint64(len(forward.members)))
	}
	sorted := slices.Sorted(slices.Values(met))
	vocabularyTexts := texts{offsets: []uint64{0}}
	for rank, word := range sorted {
		vocabulary[word] = uint32(rank)
		vocabularyTexts = vocabularyTexts.with([]byte(word))
	}
	for i, code := range forward.members {
		forward.members[i] = vocabulary[met[code]]
	}
	putTexts(w, "keyword_text", keywords)
	putLists(w, "keyword_words", forward)
	putTexts(w, "word_text", vocabularyTexts)
	putLists(w, "word_keywords", inverted(forward, len(sorted)))
	return nil
}

// inverted lists, for each of n members, the lists it is in.
func inverted(l lists, n int) lists {
	// last is the list a member was last seen in, plus one: it is in each once.
	last := make([]uint32, n)
	visit := func(each func(member, list uint32)) {
		clear(last)
		for i := range uint32(l.len()) {
			for _, m := range l.at(i) {
				if last[m] != i+1 {
					last[m] = i + 1
					each(m, i)
				}
			}
		}
	}
	in := lists{offsets: make([]uint64, n+1)}
	visit(func(m, _ uint32) { in.offsets[m+1]++ })
	for m := range n {
		in.offsets[m+1] += in.offsets[m]
	}
	in.members = make([]uint32, in.offsets[n])
	next := slices.Clone(in.offsets[:n])
	visit(func(m, list uint32) {
		in.members[next[m]] = list
		next[m]++
	})
	return in
}
