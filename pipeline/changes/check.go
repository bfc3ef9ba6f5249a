package changes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/sinks"
)

// Check reports whether the rows of before, changed as files say, are those of after: as sets
// of rows over key and compared columns. The files are those of stated. Problems are texts
// without a value of any row.
func Check(ctx context.Context, before *Dataset, after Dataset, files Files, stated *sinks.Changes, scratch string) (problems []string, err error) {
	s := Settings{By: stated.By, Compare: stated.Compare, Was: stated.Was}
	c, err := newComparison(before, after, s, scratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	list := &sinks.Manifest{}
	for _, f := range stated.Files {
		list.Parts = append(list.Parts, sinks.Part{File: f})
	}
	shape := c.shape
	shape.columns = c.shape.Columns(s)
	rows, err := openSide(Dataset{Dir: after.Dir, Files: files, Manifest: list}, shape)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	k := &checking{comparison: c, since: stated.Since}
	if err := k.check(ctx, rows); err != nil {
		return nil, err
	}
	if k.counts != [3]int64{stated.Added, stated.Changed, stated.Removed} {
		k.wrong[miscounted]++
	}
	for _, problem := range problemsInOrder {
		if n := k.wrong[problem]; n > 1 {
			problem += " (" + figures.Plural(n, "row") + ")"
			problems = append(problems, problem)
		} else if n == 1 {
			problems = append(problems, problem)
		}
	}
	return problems, nil
}

// The problems that a check may find.
const (
	missing    = "a row differs from the earlier dataset, and no change says so"
	twice      = "two changes are about one row"
	notNew     = "an added row is in the earlier dataset, or not in the new one"
	notBoth    = "a changed row is not in both datasets, or the same in both"
	notGone    = "a removed row is in the new dataset, or not in the earlier one"
	other      = "a change has other values than its dataset"
	unknown    = "a change is neither added, changed nor removed"
	miscounted = "the manifest counts other changes than the files have"
)

var problemsInOrder = []string{missing, twice, notNew, notBoth, notGone, other, unknown, miscounted}

// checking is one Check.
type checking struct {
	*comparison
	since     string
	wrong     map[string]int64
	counts    [3]int64 // added, changed, removed
	anonymous int64    // removed rows with neither key nor values
	joined    *spill.Sorter[entry]
}

// changeSide is the side of entries that are changes, beside oldSide and newSide. Their
// place has the kind of the change.
const changeSide = 2

// kinds of changes. isHidden is added for a removed row without values.
const (
	kindAdded = iota
	kindChanged
	kindRemoved
	isHidden = 4
)

// keylessRow is the kind of a row of a dataset that has no key.
const keylessRow = 1

func (k *checking) check(ctx context.Context, rows *side) (err error) {
	k.wrong = map[string]int64{}
	byKey := spill.New(k.values.dir, entry.prefix)
	k.joined = spill.New(k.values.dir, func(e entry) spill.Prefix { return spill.Prefix{High: e.key.Hi, Low: e.key.Lo} })
	defer func() { err = errors.Join(err, byKey.Close(), k.joined.Close()) }()
	reading := digesting{by: k.by, compared: k.compared, key: k.keyDigest, to: byKey}
	if err := reading.read(ctx, []*side{k.old, k.new}); err != nil {
		return err
	}
	if err := k.number(ctx, byKey); err != nil {
		return err
	}
	for i := range rows.groups {
		if err := errors.Join(ctx.Err(), k.changes(&reading, rows, &rows.groups[i])); err != nil {
			return err
		}
	}
	var group []entry
	end := func() {
		if len(group) > 0 {
			k.judge(group)
		}
		group = group[:0]
	}
	err = k.joined.Each(ctx, spill.Sorted(func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key.Hi, b.key.Hi), cmp.Compare(a.key.Lo, b.key.Lo), cmp.Compare(a.place, b.place))
	}), func(sorted []entry) error {
		for _, e := range sorted {
			if len(group) > 0 && e.key != group[0].key {
				end()
			}
			group = append(group, e)
		}
		return nil
	})
	end()
	if k.anonymous != 0 {
		k.wrong[notGone] += max(k.anonymous, 0)
		k.wrong[missing] += max(-k.anonymous, 0)
	}
	return err
}

// keyDigest is the beginning of KeyHash, so that rows without a key are found too.
func (k *checking) keyDigest(value []byte) digest {
	sum := sha256.Sum256(append([]byte(k.since+":"), value...))
	return digestOf(sum[:])
}

func digestOf(sum []byte) digest {
	return digest{Hi: binary.BigEndian.Uint64(sum), Lo: binary.BigEndian.Uint64(sum[8:])}
}

// number numbers the rows of each key.
func (k *checking) number(ctx context.Context, byKey *spill.Sorter[entry]) error {
	var high uint64
	counts := map[digest]*[2]int32{}
	return byKey.Each(ctx, spill.Sorted(compareEntries), func(sorted []entry) error {
		for _, e := range sorted {
			if e.key.Hi != high {
				clear(counts)
				high = e.key.Hi
			}
			of := counts[e.key]
			if of == nil {
				of = new([2]int32)
				counts[e.key] = of
			}
			of[e.side()]++
			kind := uint64(0)
			if e.key == keyless(e.values) {
				kind = keylessRow
			}
			if err := k.joined.Add(entry{key: nth(e.key, of[e.side()]), values: e.values, place: kind<<2 | uint64(e.side())}); err != nil {
				return err
			}
		}
		return nil
	})
}

// nth is the key of a row with its occurrence.
func nth(key digest, occurrence int32) digest {
	return mix(key, mix(digest{}, digest{Hi: uint64(occurrence), Lo: uint64(occurrence)}))
}

// changes adds the rows of a row group of the changes.
func (k *checking) changes(reading *digesting, s *side, g *rowGroup) (err error) {
	defer contain(g, &err)
	rows, err := reading.group(s, g)
	if err != nil {
		return err
	}
	kinds, hashes, occurrences := make([]uint64, g.rows), make([]digest, g.rows), make([]int32, g.rows)
	if err := g.each(g.file.leaves["change"][0], func(row int, _ levels, value []byte) {
		switch string(value) {
		case added:
			kinds[row] = kindAdded
		case changed:
			kinds[row] = kindChanged
		case removed:
			kinds[row] = kindRemoved
		default:
			kinds[row] = isHidden - 1
		}
	}); err != nil {
		return err
	}
	if err := g.each(g.file.leaves["key_hash"][0], func(row int, _ levels, value []byte) {
		if sum, err := hex.DecodeString(string(value)); err == nil && len(sum) == sha256.Size {
			hashes[row] = digestOf(sum)
		}
	}); err != nil {
		return err
	}
	if err := g.each(g.file.leaves["occurrence"][0], func(row int, _ levels, value []byte) {
		occurrences[row] = int32(binary.LittleEndian.Uint64(value))
	}); err != nil {
		return err
	}
	for i, kind := range kinds {
		if kind > kindRemoved {
			k.wrong[unknown]++
			continue
		}
		k.counts[kind]++
		key := rows.keys[i]
		switch {
		case kind == kindRemoved && k.shape.leavesOut && hashes[i] == (digest{}):
			k.anonymous++
			continue
		case kind == kindRemoved && k.shape.leavesOut:
			key, kind = hashes[i], kind|isHidden
		case !rows.keyed[i]:
			key = keyless(rows.values[i])
		}
		if err := k.joined.Add(entry{key: nth(key, occurrences[i]), values: rows.values[i], place: kind<<2 | changeSide}); err != nil {
			return err
		}
	}
	return nil
}

// judge compares the rows and the change of one key and occurrence.
func (k *checking) judge(group []entry) {
	var of [3]*entry
	for i := range group {
		side := group[i].side()
		if of[side] != nil {
			k.wrong[twice]++
			return
		}
		of[side] = &group[i]
	}
	old, fresh, change := of[oldSide], of[newSide], of[changeSide]
	switch {
	case change == nil && old != nil && fresh != nil && old.values == fresh.values:
	case change == nil && fresh == nil && k.shape.leavesOut && old.place>>2 == keylessRow:
		k.anonymous--
	case change == nil:
		k.wrong[missing]++
	default:
		k.judgeChange(change, old, fresh)
	}
}

func (k *checking) judgeChange(change, old, fresh *entry) {
	switch kind := change.place >> 2; {
	case kind == kindAdded && (old != nil || fresh == nil):
		k.wrong[notNew]++
	case kind == kindChanged && (old == nil || fresh == nil || old.values == fresh.values):
		k.wrong[notBoth]++
	case kind&^isHidden == kindRemoved && (old == nil || fresh != nil):
		k.wrong[notGone]++
	case kind == kindRemoved && change.values != old.values, kind < kindRemoved && change.values != fresh.values:
		k.wrong[other]++
	}
}
