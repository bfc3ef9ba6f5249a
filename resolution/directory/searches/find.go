package searches

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"runtime/debug"
	"time"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// Found is a lead of a keyword search, with the data of its most recent matching search.
type Found struct {
	LeadID     string    // lead_ and 32 lower-case hex digits
	LeadType   string    // b2b, b2c or empty
	SearchedAt time.Time // UTC
	// NetworkURL and EmailKey are the keys of the person; one of them may be empty.
	NetworkURL, EmailKey string
	JobTitle             string
	Address              resolution.Address // without street
	// MatchedKeywords are the keywords of the request in matching searches of the lead,
	// in the order and spelling of the request. Find fills it.
	MatchedKeywords []string
}

// Find finds at most limit leads of a keyword search after skipping some: the most recent
// search first, of equals by LeadID. total counts all leads. q.Edition is ignored.
//
// Errors: resolution.ErrUnavailable for a damaged file.
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

// Sample is Find for a part of the leads, evenly spread: all leads up to most, and else more
// than half of most. The choice depends only on the request and the data.
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

// spread keeps evenly spread rows, and never more than most.
type spread struct {
	most  int
	every int64
	rows  []int
}

func (s *spread) add(n int64, row int) {
	if n%s.every != 0 {
		return
	}
	if len(s.rows) == s.most { // drop every other one
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

// search calls do with the searches that match q.
func (f *File) search(ctx context.Context, q resolution.KeywordSearch, do func(*scratch, matching) error) (err error) {
	defer damaged(&err)
	if err := f.file.CheckAll(); err != nil {
		return err
	}
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
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

// damaged adds to an error what to do. Defer it after keyed.Guard.
func damaged(err *error) {
	if of, ok := errors.AsType[leaveOutError](*err); ok {
		*err = of.error
		return
	}
	if errors.Is(*err, keyed.ErrDamaged) {
		*err = fmt.Errorf("%w: the file of searches is damaged, import the searches again: %w", resolution.ErrUnavailable, *err)
	}
}

// leads iterates over the leads in their order and returns their number. It calls each with the
// most recent matching searches of some leads: the rows after base whose bit is in fresh. The
// first of them is of lead n, from 0.
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
		if fresh := addMatching(seen, f.lead[base:min(base+64, len(f.lead))], left); fresh != 0 {
			each(n, fresh, base)
			n += int64(bits.OnesCount64(fresh))
		}
	}
	return n, nil
}

// found returns the data of rows, in memory of its own.
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

// rememberedKeywords bounds the keywords that matched remembers, because a lead may have made
// millions of searches.
const rememberedKeywords = 1 << 14

// matched fills MatchedKeywords of the leads of rows, which are sorted.
func (f *File) matched(ctx context.Context, keywords []string, s *scratch, m matching, rows []int, found []Found) error {
	if len(rows) == 0 || len(keywords) == 0 {
		return nil
	}
	if len(keywords) == 1 { // all leads have it
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
	has := make([]bitset, len(rows)) // indexes in keywords
	for i, row := range rows {
		wanted.set(f.lead[row])
		place[f.lead[row]] = i
		has[i] = make(bitset, (len(keywords)+63)/64)
	}
	met := map[uint32]bitset{}
	skip := (rows[0] - m.base) / 64 // there are no searches of these leads before the first row
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
