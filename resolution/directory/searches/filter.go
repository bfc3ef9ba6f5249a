package searches

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// phrase has the codes of the words of a requested keyword; nil if no search has it.
type phrase []uint32

func (f *File) phrase(keyword string) phrase {
	var p phrase
	for _, word := range words(keyword) {
		at, ok := sort.Find(f.words.Len(), func(i int) int { return strings.Compare(word, string(f.words.At(uint32(i)))) })
		if !ok {
			return nil
		}
		p = append(p, uint32(at))
	}
	return p
}

// in reports whether words contains the phrase: all words, in order and adjacent.
func (p phrase) in(words []uint32) bool {
	if len(p) == 0 {
		return false
	}
	for i := 0; i+len(p) <= len(words); i++ {
		if words[i] == p[0] && slices.Equal(words[i:i+len(p)], p) {
			return true
		}
	}
	return false
}

// keywordsWith adds the keywords that contain the phrase.
func (f *File) keywordsWith(p phrase, into bitset) {
	if len(p) == 0 {
		return
	}
	rarest := slices.MinFunc(p, func(a, b uint32) int {
		return len(f.wordKeywords.At(a)) - len(f.wordKeywords.At(b))
	})
	for _, keyword := range f.wordKeywords.At(rarest) {
		if len(p) == 1 || p.in(f.keywordWords.At(keyword)) {
			into.set(keyword)
		}
	}
}

// equal adds the terms that equal text without regard to case.
func (d dictionary) equal(text string, into bitset) {
	text = fold(text)
	n := d.folded.Len()
	for i := sort.Search(n, func(i int) bool { return string(d.folded.At(uint32(i))) >= text }); i < n && string(d.folded.At(uint32(i))) == text; i++ {
		into.set(uint32(i))
	}
}

// containing calls each for the terms that contain part, without regard to case. The empty
// term contains nothing.
func (d dictionary) containing(part string, each func(code uint32)) {
	want := []byte(fold(part))
	all, offsets := d.folded.Bytes, d.folded.Offsets
	for at, code := uint64(0), uint32(0); ; {
		i := bytes.Index(all[at:], want)
		if i < 0 {
			return
		}
		at += uint64(i)
		// Find the term at this place. If there are many matches, the next one is
		// near, so look there first.
		code = galloping(offsets, code, at)
		if int(code) >= d.folded.Len() {
			return
		}
		if at+uint64(len(want)) > offsets[code+1] { // the match crosses the end of the term
			at++
			continue
		}
		each(code)
		at = offsets[code+1]
	}
}

// galloping returns the last index at or after from whose offset is at most at. The offset of
// from must be at most at.
func galloping(offsets []uint64, from uint32, at uint64) uint32 {
	step := uint32(1)
	for int(from+step) < len(offsets) && offsets[from+step] <= at {
		step *= 2
	}
	rest := offsets[from+1 : min(int(from+step), len(offsets)-1)+1]
	return from + uint32(sort.Search(len(rest), func(i int) bool { return rest[i] > at }))
}

// matching has the matching searches of a request: a bit for each row from base on, which is a
// multiple of 64.
type matching struct {
	base int
	rows bitset
	left bitset // leads that are left out
}

// block is how many rows are checked between two checks of the context.
const block = 1 << 14

// match finds the searches of a request. The result uses memory of s.
func (f *File) match(ctx context.Context, q resolution.KeywordSearch, s *scratch) (matching, error) {
	from, to := f.window(q.Start, q.End)
	m := matching{base: from &^ 63}
	narrowers, possible := f.narrowers(q, s)
	if !possible || from >= to {
		return m, ctx.Err()
	}
	m.rows = s.bitset(to - m.base)
	m.rows.setRange(uint32(from-m.base), uint32(to-m.base))
	return m, m.narrow(ctx, to, narrowers...)
}

// narrow removes the rows that one of the narrowers removes, up to end. Processors share many
// rows.
func (m matching) narrow(ctx context.Context, end int, narrowers ...narrower) error {
	var next atomic.Int64
	work := func() (err error) {
		defer keyed.Guard(&err, debug.SetPanicOnFault(true))
		for {
			at := int(next.Add(block/64)) - block/64
			if at >= len(m.rows) {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			part := m.rows[at:min(at+block/64, len(m.rows))]
			from := m.base + at*64
			for _, narrow := range narrowers {
				narrow(part, from, min(from+len(part)*64, end))
			}
		}
	}
	if len(m.rows) < 4*block/64 { // too few for another goroutine
		return work()
	}
	var g errgroup.Group
	for range runtime.GOMAXPROCS(0) {
		g.Go(work)
	}
	return g.Wait()
}

// window returns the rows of the days from start to end; a zero day is no bound.
func (f *File) window(start, end time.Time) (from, to int) {
	from, to = 0, len(f.at)
	if !end.IsZero() {
		after := dayStart(end.UTC().AddDate(0, 0, 1))
		from = sort.Search(len(f.at), func(i int) bool { return f.at[i] < after })
	}
	if !start.IsZero() {
		first := dayStart(start)
		to = sort.Search(len(f.at), func(i int) bool { return f.at[i] < first })
	}
	return from, to
}

// narrower removes rows in [from, to) that do not match from part, which has a bit for each.
type narrower func(part bitset, from, to int)

func on[T uint8 | uint16 | uint32](column []T, set bitset) narrower {
	if len(set)*64 <= maxTable && len(column) >= maxTable {
		t := tableOf(set)
		return func(part bitset, from, to int) { narrowBy(part, column[from:to], t) }
	}
	return func(part bitset, from, to int) { narrow(part, column[from:to], set) }
}

// narrowers returns the filters of a request. possible is false if one of them matches nothing.
func (f *File) narrowers(q resolution.KeywordSearch, s *scratch) (all []narrower, possible bool) {
	possible = true
	add := func(n narrower, set bitset, of int) {
		switch set.count() {
		case 0:
			possible = false
		case of:
		default:
			all = append(all, n)
		}
	}
	if len(q.Keywords) > 0 {
		set := s.bitset(f.keywords.Len())
		for _, keyword := range q.Keywords {
			f.keywordsWith(f.phrase(keyword), set)
		}
		add(on(f.keyword, set), set, f.keywords.Len())
	}
	if q.LeadType != "" {
		set := s.bitset(1 << 8)
		if code := slices.Index(leadTypes, strings.ToLower(q.LeadType)); code > 0 {
			set.set(uint32(code))
		}
		add(on(f.leadType, set), set, -1)
	}
	if len(q.States) > 0 {
		set := s.bitset(1 << 16)
		for _, state := range q.States {
			if state = strings.ToUpper(strings.TrimSpace(state)); len(state) == 2 || state == "" {
				set.set(uint32(stateCode(state)))
			}
		}
		add(on(f.state, set), set, -1)
	}
	for _, d := range []struct {
		wanted []string
		of     dictionary
		column []uint32
	}{{q.Cities, f.cities, f.city}, {q.Zips, f.zips, f.zip}} {
		if len(d.wanted) == 0 {
			continue
		}
		set := s.bitset(d.of.raw.Len())
		for _, text := range d.wanted {
			d.of.equal(text, set)
		}
		add(on(d.column, set), set, d.of.raw.Len())
	}
	if len(q.JobTitleInclusions)+len(q.JobTitleExclusions) > 0 {
		set := f.titles(q, s)
		add(on(f.jobTitle, set), set, f.jobTitles.raw.Len())
	}
	return all, possible
}

// titles returns the job titles that are included and not excluded.
func (f *File) titles(q resolution.KeywordSearch, s *scratch) bitset {
	n := f.jobTitles.raw.Len()
	set := s.bitset(n)
	if len(q.JobTitleInclusions) == 0 {
		set.setRange(0, uint32(n))
	}
	for _, part := range q.JobTitleInclusions {
		f.jobTitles.containing(part, set.set)
	}
	for _, part := range q.JobTitleExclusions {
		f.jobTitles.containing(part, func(code uint32) { set[code>>6] &^= 1 << (code & 63) })
	}
	return set
}
