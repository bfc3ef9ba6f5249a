package searches

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"runtime/debug"
	"time"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/resolution"
)

// Found is one lead of a keyword search, with what its most recent
// matching search says.
type Found struct {
	LeadID     string    // lead_ and 32 lower-case hex digits
	LeadType   string    // b2b, b2c or empty
	SearchedAt time.Time // UTC
	// NetworkURL and EmailKey are the keys of who searched; either may be empty.
	NetworkURL, EmailKey string
	JobTitle             string
	Address              resolution.Address // without street
	// MatchedKeywords are those of the request that any of the lead's matching
	// searches has, in the request's order and spelling. Find fills it.
	MatchedKeywords []string
}

// Find finds the leads of a keyword search from the skip-th on, at most limit
// of them: the most recent search first, of equals by LeadID. total counts all
// leads. q.Edition is not looked at.
//
// Errors: resolution.ErrUnavailable when the file is damaged.
func (f *File) Find(ctx context.Context, q resolution.KeywordSearch, skip int64, limit int) (found []Found, total int64, err error) {
	err = f.search(ctx, q, func(s *scratch, m matching) error {
		var rows []int
		total, err = f.leads(ctx, s, m, func(n int64, fresh uint64, base int) {
			if n+int64(bits.OnesCount64(fresh)) <= skip || len(rows) == limit {
				return
			}
			for ; fresh != 0; fresh &= fresh - 1 {
				if n >= skip && len(rows) < limit {
					rows = append(rows, base+bits.TrailingZeros64(fresh))
				}
				n++
			}
		})
		if err != nil {
			return err
		}
		found = f.found(rows)
		return f.matched(ctx, q.Keywords, s, m, rows, found)
	})
	return found, total, err
}

// Sample is Find for a part of the leads, evenly spread: all of them when there
// are at most that many, and else more than half of most. Which leads depends
// on the request and the data alone.
func (f *File) Sample(ctx context.Context, q resolution.KeywordSearch, most int) (found []Found, total int64, err error) {
	err = f.search(ctx, q, func(s *scratch, m matching) error {
		spread := spread{most: most, every: 1}
		total, err = f.leads(ctx, s, m, func(n int64, fresh uint64, base int) {
			for ; fresh != 0; fresh &= fresh - 1 {
				spread.add(n, base+bits.TrailingZeros64(fresh))
				n++
			}
		})
		found = f.found(spread.rows)
		return err
	})
	return found, total, err
}

// spread keeps every so-manieth row, so that it is never more than most.
type spread struct {
	most  int
	every int64
	rows  []int
}

func (s *spread) add(n int64, row int) {
	if n%s.every != 0 {
		return
	}
	if len(s.rows) == s.most { // every other one goes
		half := (s.most + 1) / 2
		for i := range half {
			s.rows[i] = s.rows[2*i]
		}
		s.rows = s.rows[:half]
		s.every *= 2
		if n%s.every != 0 {
			return
		}
	}
	s.rows = append(s.rows, row)
}

// CheckAll checks the checksums that were not checked yet.
func (f *File) CheckAll() error { return f.file.CheckAll() }

// search runs do over the searches that match q.
func (f *File) search(ctx context.Context, q resolution.KeywordSearch, do func(*scratch, matching) error) (err error) {
	defer damaged(&err)
	if err := f.file.CheckAll(); err != nil {
		return err
	}
	defer columnfile.Guard(&err, debug.SetPanicOnFault(true))
	var s scratch
	defer s.release()
	m, err := f.match(ctx, q, &s)
	if err != nil {
		return err
	}
	if m.left, err = f.leftOut(ctx); err != nil {
		return err
	}
	return do(&s, m)
}

// damaged is deferred after columnfile.Guard, to say what to do.
func damaged(err *error) {
	if errors.Is(*err, columnfile.ErrDamaged) {
		*err = fmt.Errorf("%w: the file of searches is damaged, import the searches again: %w", resolution.ErrUnavailable, *err)
	}
}

// leads goes through the leads in their order and returns their number. each
// gets the most recent matching searches of some: those rows above base whose
// bit is in fresh, the first of them of the n-th lead, from 0.
func (f *File) leads(ctx context.Context, s *scratch, m matching, each func(n int64, fresh uint64, base int)) (n int64, err error) {
	seen := s.bitset(len(f.leadIDs))
	copy(seen, m.left)
	for w, left := range m.rows {
		if w%(block/64) == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		if left == 0 {
			continue
		}
		base := m.base + w*64
		if fresh := add(seen, f.lead[base:min(base+64, len(f.lead))], left); fresh != 0 {
			each(n, fresh, base)
			n += int64(bits.OnesCount64(fresh))
		}
	}
	return n, nil
}

// found tells what rows say. Nothing of it lies in the mapped file.
func (f *File) found(rows []int) []Found {
	found := make([]Found, len(rows))
	for i, row := range rows {
		lead := f.lead[row]
		id := f.leadIDs[lead]
		found[i] = Found{
			LeadID:     "lead_" + hex.EncodeToString(id[:]),
			LeadType:   leadTypes[f.leadType[row]],
			SearchedAt: time.UnixMicro(f.at[row]).UTC(),
			EmailKey:   string(f.emails.At(f.email[row])),
			JobTitle:   string(f.jobTitles.raw.At(f.jobTitle[row])),
			Address: resolution.Address{
				City:    string(f.cities.raw.At(f.city[row])),
				State:   stateText(f.state[row]),
				ZipCode: string(f.zips.raw.At(f.zip[row])),
			},
		}
		if key := f.leadKeys.At(lead); key[0] == leadByProfile {
			found[i].NetworkURL = string(key[1:])
		} else {
			found[i].EmailKey = string(key[1:])
		}
	}
	return found
}

// rememberedKeywords bounds what matched remembers of keywords it met: a lead
// may have made millions of searches.
const rememberedKeywords = 1 << 14

// matched fills MatchedKeywords of the leads found at rows, which are in order.
func (f *File) matched(ctx context.Context, keywords []string, s *scratch, m matching, rows []int, found []Found) error {
	if len(rows) == 0 || len(keywords) == 0 {
		return nil
	}
	if len(keywords) == 1 { // there is no other reason to be found
		for i := range found {
			found[i].MatchedKeywords = []string{keywords[0]}
		}
		return nil
	}
	phrases := make([]phrase, len(keywords))
	for i, keyword := range keywords {
		phrases[i] = f.phrase(keyword)
	}
	wanted := s.bitset(len(f.leadIDs))
	place := make(map[uint32]int, len(rows))
	has := make([]bitset, len(rows)) // places in keywords
	for i, row := range rows {
		wanted.set(f.lead[row])
		place[f.lead[row]] = i
		has[i] = make(bitset, (len(keywords)+63)/64)
	}
	met := map[uint32]bitset{}
	skip := (rows[0] - m.base) / 64 // before the first there are none of theirs
	m = matching{base: m.base + skip*64, rows: m.rows[skip:]}
	if err := m.narrow(ctx, len(f.lead), on(f.lead, wanted)); err != nil {
		return err
	}
	for w, rest := range m.rows {
		for ; rest != 0; rest &= rest - 1 {
			row := m.base + w*64 + bits.TrailingZeros64(rest)
			lead, keyword := f.lead[row], f.keyword[row]
			of, ok := met[keyword]
			if !ok {
				of = make(bitset, (len(keywords)+63)/64)
				for i, p := range phrases {
					if p.in(f.keywordWords.At(keyword)) {
						of.set(uint32(i))
					}
				}
				if len(met) == rememberedKeywords {
					clear(met)
				}
				met[keyword] = of
			}
			for i, word := range of {
				has[place[lead]][i] |= word
			}
		}
	}
	for i := range found {
		for k, keyword := range keywords {
			if has[i].has(uint32(k)) {
				found[i].MatchedKeywords = append(found[i].MatchedKeywords, keyword)
			}
		}
	}
	return nil
}
