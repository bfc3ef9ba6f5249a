package searches

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
)

// The kinds of keys of leads: a byte in front of the key.
const (
	leadByProfile = 'n'
	leadByEmail   = 'e'
)

// errTooMany says that numbers of rows or texts need more than 31 bits.
var errTooMany = fmt.Errorf("%w: more than 2,147,483,647 searches", resolution.ErrInvalid)

// leadIDOf returns the number of a person in all searches, on any machine and in any import:
// the first half of a SHA-256 with a prefix of its own. The person is identified by a profile
// address or, if a search has none, by an email address. A person with a profile address in
// one search and only an email address in another is two leads, because the people, who
// could join them, are imported separately.
func leadIDOf(key string) (id [16]byte) {
	of := "network_url"
	if key[0] == leadByEmail {
		of = "email"
	}
	sum := sha256.Sum256([]byte("leadetl/lead_id/1\x00" + of + "\x00" + key[1:]))
	copy(id[:], sum[:])
	return id
}

// builder makes a file of searches in any order. It needs about 30 bytes of memory for each
// distinct text and, at the end, 16 for each search.
type builder struct {
	to                                        imports.File
	at                                        *keyed.Spool[int64]
	lead, keyword, email, city, zip, jobTitle *keyed.Spool[uint32]
	state                                     *keyed.Spool[uint16]
	leadType                                  *keyed.Spool[uint8]

	leadIDs                                              *keyed.Spool[[16]byte]
	leads, emails, keywords, cities, zipCodes, jobTitles *keyed.Lexicon
}

func newBuilder(to imports.File) *builder {
	dir := to.Scratch
	b := &builder{
		to: to,
		at: keyed.NewSpool[int64](dir), lead: keyed.NewSpool[uint32](dir), keyword: keyed.NewSpool[uint32](dir),
		email: keyed.NewSpool[uint32](dir), city: keyed.NewSpool[uint32](dir), zip: keyed.NewSpool[uint32](dir),
		jobTitle: keyed.NewSpool[uint32](dir), state: keyed.NewSpool[uint16](dir), leadType: keyed.NewSpool[uint8](dir),
		leadIDs: keyed.NewSpool[[16]byte](dir), leads: keyed.NewLexicon(dir), emails: keyed.NewLexicon(dir),
		keywords: keyed.NewLexicon(dir), cities: keyed.NewLexicon(dir), zipCodes: keyed.NewLexicon(dir), jobTitles: keyed.NewLexicon(dir),
	}
	_, _, _ = b.emails.Code("") // 0; one text stays in memory
	return b
}

// close frees the spools.
func (b *builder) close() error {
	return errors.Join(b.at.Close(), b.lead.Close(), b.keyword.Close(), b.email.Close(), b.city.Close(), b.zip.Close(), b.jobTitle.Close(),
		b.state.Close(), b.leadType.Close(), b.leadIDs.Close(), b.leads.Close(), b.emails.Close(), b.keywords.Close(), b.cities.Close(),
		b.zipCodes.Close(), b.jobTitles.Close())
}

// addSearch adds a search.
func (b *builder) addSearch(s cells) error {
	if b.at.Len() == math.MaxInt32 {
		return errTooMany
	}
	key, email := string(leadByProfile)+s.person, s.email
	if s.person == "" {
		key, email = string(leadByEmail)+s.email, ""
	}
	lead, added, err := b.leads.Code(key)
	if added {
		err = errors.Join(err, b.leadIDs.Add(leadIDOf(key)))
	}
	if err != nil {
		return err
	}
	if err := errors.Join(b.at.Add(s.at), b.lead.Add(lead)); err != nil {
		return err
	}
	for _, c := range []struct {
		of   *keyed.Lexicon
		text string
		into *keyed.Spool[uint32]
	}{
		{b.keywords, s.keyword, b.keyword},
		{b.emails, email, b.email},
		{b.cities, s.city, b.city},
		{b.zipCodes, s.zip, b.zip},
		{b.jobTitles, s.jobTitle, b.jobTitle},
	} {
		code, _, err := c.of.Code(c.text)
		if err != nil {
			return err
		}
		if err := c.into.Add(code); err != nil {
			return err
		}
	}
	return errors.Join(b.state.Add(stateCode(s.state)), b.leadType.Add(uint8(slices.Index(leadTypes, s.leadType))))
}

// write writes the file.
func (b *builder) write(ctx context.Context) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true)) // the spools are mapped files
	w := keyed.NewColumnWriter(b.to, keyed.MappedPages)
	for _, step := range []func(*keyed.ColumnWriter) error{b.writeRows, b.writeKeywords} {
		if err := step(w); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return w.Finish()
}

// place is the position of a search.
type place struct {
	at        int64
	lead, row uint32
}

func (b *builder) writeRows(w *keyed.ColumnWriter) error {
	leads, err := b.writeLeads(w)
	if err != nil {
		return err
	}
	order, err := b.order(w, leads)
	if err != nil {
		return err
	}
	emails, err := b.emails.Read()
	if err != nil {
		return err
	}
	keyed.PutTexts(w, "email_text", emails)
	if err := errors.Join(gather(w, "keyword", b.keyword, order, nil), gather(w, "email", b.email, order, nil),
		gather(w, "state", b.state, order, nil), gather(w, "lead_type", b.leadType, order, nil)); err != nil {
		return err
	}
	for _, d := range []struct {
		name  string
		texts *keyed.Lexicon
		codes *keyed.Spool[uint32]
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

// writeLeads sorts the leads by id, and returns the new number of each.
func (b *builder) writeLeads(w *keyed.ColumnWriter) (ranks []uint32, err error) {
	keys, err := b.leads.Read()
	if err != nil {
		return nil, err
	}
	ids, err := b.leadIDs.Read()
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
	for rank, l := range leads {
		ranks[l.code] = uint32(rank)
	}
	keyed.PutEach(w, "lead_id", len(leads), func(i int) [16]byte { return ids[leads[i].code] })
	keyed.PutEachText(w, "lead_key", len(leads), func(i int) []byte { return keys.At(leads[i].code) })
	return ranks, nil
}

// order writes the columns by which searches are sorted, and returns the original number of
// each search in the new order.
func (b *builder) order(w *keyed.ColumnWriter, leads []uint32) ([]uint32, error) {
	at, err := b.at.Read()
	if err != nil {
		return nil, err
	}
	lead, err := b.lead.Read()
	if err != nil {
		return nil, err
	}
	places := make([]place, len(at))
	for i := range places {
		places[i] = place{at[i], leads[lead[i]], uint32(i)}
	}
	// Searches of a lead at the same time stay in the order of their lines.
	slices.SortFunc(places, func(a, b place) int {
		if a.at != b.at {
			return cmp.Compare(b.at, a.at)
		}
		return cmp.Or(cmp.Compare(a.lead, b.lead), cmp.Compare(a.row, b.row))
	})
	keyed.PutEach(w, "searched_at", len(places), func(i int) int64 { return places[i].at })
	keyed.PutEach(w, "lead", len(places), func(i int) uint32 { return places[i].lead })
	order := make([]uint32, len(places))
	for i, p := range places {
		order[i] = p.row
	}
	return order, errors.Join(b.at.Close(), b.lead.Close())
}

// gather writes a column in the new order, with ranks in place of codes if there are any, and
// frees the spool.
func gather[T uint8 | uint16 | uint32](w *keyed.ColumnWriter, name string, from *keyed.Spool[T], order []uint32, ranks []T) error {
	column, err := from.Read()
	if err != nil {
		return err
	}
	keyed.PutEach(w, name, len(order), func(i int) T {
		if ranks != nil {
			return ranks[column[order[i]]]
		}
		return column[order[i]]
	})
	return from.Close()
}

// writeDictionary writes texts sorted by their folded form, and returns the new code of each.
func writeDictionary(w *keyed.ColumnWriter, name string, l *keyed.Lexicon) (ranks []uint32, err error) {
	raw, err := l.Read()
	if err != nil {
		return nil, err
	}
	type term struct {
		folded string
		code   uint32
	}
	terms := make([]term, raw.Len())
	for i := range terms {
		terms[i] = term{fold(string(raw.At(uint32(i)))), uint32(i)}
	}
	slices.SortFunc(terms, func(a, b term) int {
		return cmp.Or(strings.Compare(a.folded, b.folded), bytes.Compare(raw.At(a.code), raw.At(b.code)))
	})
	ranks = make([]uint32, len(terms))
	for rank, t := range terms {
		ranks[t.code] = uint32(rank)
	}
	keyed.PutEachText(w, name+"_text", len(terms), func(i int) []byte { return raw.At(terms[i].code) })
	keyed.PutEachText(w, name+"_folded", len(terms), func(i int) []byte { return []byte(terms[i].folded) })
	return ranks, l.Close()
}

// writeKeywords writes the keywords and their words.
func (b *builder) writeKeywords(w *keyed.ColumnWriter) error {
	keywords, err := b.keywords.Read()
	if err != nil {
		return err
	}
	vocabulary := map[string]uint32{} // in the order of first use
	var met []string
	forward := keyed.Lists{Offsets: []uint64{0}}
	for i := range keywords.Len() {
		for _, word := range words(string(keywords.At(uint32(i)))) {
			code, ok := vocabulary[word]
			if !ok {
				code = uint32(len(met))
				word = strings.Clone(word)
				vocabulary[word] = code
				met = append(met, word)
			}
			forward.Members = append(forward.Members, code)
		}
		forward.Offsets = append(forward.Offsets, uint64(len(forward.Members)))
	}
	sorted := slices.Sorted(slices.Values(met))
	for rank, word := range sorted {
		vocabulary[word] = uint32(rank)
	}
	for i, code := range forward.Members {
		forward.Members[i] = vocabulary[met[code]]
	}
	keyed.PutTexts(w, "keyword_text", keywords)
	keyed.PutLists(w, "keyword_words", forward)
	keyed.PutEachText(w, "word_text", len(sorted), func(i int) []byte { return []byte(sorted[i]) })
	keyed.PutLists(w, "word_keywords", inverted(forward, len(sorted)))
	return nil
}

// inverted returns, for each of n members, the lists that contain it.
func inverted(l keyed.Lists, n int) keyed.Lists {
	// last is the list in which a member was last seen, plus one, so that each list
	// counts once.
	last := make([]uint32, n)
	visit := func(each func(member, list uint32)) {
		clear(last)
		for i := range uint32(l.Len()) {
			for _, m := range l.At(i) {
				if last[m] != i+1 {
					last[m] = i + 1
					each(m, i)
				}
			}
		}
	}
	in := keyed.Lists{Offsets: make([]uint64, n+1)}
	visit(func(m, _ uint32) { in.Offsets[m+1]++ })
	for m := range n {
		in.Offsets[m+1] += in.Offsets[m]
	}
	in.Members = make([]uint32, in.Offsets[n])
	next := slices.Clone(in.Offsets[:n])
	visit(func(m, list uint32) {
		in.Members[next[m]] = list
		next[m]++
	})
	return in
}
