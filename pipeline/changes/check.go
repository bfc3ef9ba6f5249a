package changes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/spill"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/typed"
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
	k := &checking{comparison: c, since: stated.Since, wrong: map[string]int64{}}
	if err := k.check(ctx, rows); err != nil {
		return nil, err
	}
	if k.counts != [...]int64{stated.Added, stated.Changed, stated.Removed, stated.WithoutKey} {
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
	unfounded  = "a change is not between the datasets, or is there twice"
	other      = "a change has other values than its dataset"
	unknown    = "a change is neither added, changed, removed nor without_key"
	miscounted = "the manifest counts other changes than the files have"
)

var problemsInOrder = []string{missing, unfounded, other, unknown, miscounted}

// checking is one Check.
type checking struct {
	*comparison
	since  string
	wrong  map[string]int64
	counts [4]int64 // of kinds
	claims *spill.Sorter[claim]
}

// kinds are the values of the column change.
var kinds = []string{added, changed, removed, noKey}

// claim says that the datasets differ by a row: the datasets themselves do, or the files of the
// changes. Claims of the same difference have the same id.
type claim struct {
	id     digest
	stated bool // by the files
}

// claimOf identifies a difference by what it is and by its rows. key is that of a row that shows
// nothing else of itself.
func claimOf(what string, fresh, old rowHash, key digest) digest {
	text := fmt.Sprintf("%s %s %s %x %x", what, fresh, old, key.Hi, key.Lo)
	return keyDigest([]byte(text))
}

func (k *checking) check(ctx context.Context, rows *side) (err error) {
	k.claims = spill.New(k.values.dir, func(c claim) spill.Prefix { return spill.Prefix{High: c.id.Hi, Low: c.id.Lo} })
	defer func() { err = errors.Join(err, k.claims.Close()) }()
	add := func(d difference, key digest) error {
		return k.claims.Add(claim{id: claimOf(d.what(), d.newHash, d.oldHash, key)})
	}
	pair := func(old, fresh unmatched) error { return add(differenceOf(&old, &fresh), digest{}) }
	single := func(u unmatched) error {
		d, key := alone(u), digest{}
		if d.what() == removed && k.shape.leavesOut && u.foundBy() == aColumn {
			key = u.key
		}
		return add(d, key)
	}
	if err := k.pair(ctx, k.saltedKey, pair, single); err != nil {
		return err
	}
	for i := range rows.groups {
		if err := errors.Join(ctx.Err(), k.state(rows, &rows.groups[i])); err != nil {
			return err
		}
	}
	var last claim
	balance := 0 // of the claims with one id
	end := func() {
		k.wrong[missing] += int64(max(balance, 0))
		k.wrong[unfounded] += int64(max(-balance, 0))
		balance = 0
	}
	err = k.claims.Each(ctx, spill.Sorted(func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.id.Hi, b.id.Hi), cmp.Compare(a.id.Lo, b.id.Lo))
	}), func(sorted []claim) error {
		for _, c := range sorted {
			if c.id != last.id {
				end()
			}
			if last = c; c.stated {
				balance--
			} else {
				balance++
			}
		}
		return nil
	})
	end()
	return err
}

// saltedKey is the beginning of KeyHash.
func (k *checking) saltedKey(value []byte) digest {
	sum := sha256.Sum256(append([]byte(k.since+":"), value...))
	return digestOf(sum[:])
}

// state adds what a row group of the changes says.
func (k *checking) state(s *side, g *rowGroup) (err error) {
	defer typed.Contain(&err)
	rows, err := k.digesting(k.saltedKey, nil).group(s, g)
	if err != nil {
		return err
	}
	texts := map[string][]string{}
	for _, column := range []string{"change", "key_hash", "row_hash", "was_row_hash"} {
		of := make([]string, g.rows)
		if err := g.column(column, func(row int, value []byte) { of[row] = string(value) }); err != nil {
			return err
		}
		texts[column] = of
	}
	for i, what := range texts["change"] {
		kind := slices.Index(kinds, what)
		if kind < 0 {
			k.wrong[unknown]++
			continue
		}
		k.counts[kind]++
		fresh, isNew := parseRowHash(texts["row_hash"][i])
		old, _ := parseRowHash(texts["was_row_hash"][i])
		var key digest
		switch hidden := !isNew && k.shape.leavesOut; {
		case hidden && what == removed:
			if sum, err := hex.DecodeString(texts["key_hash"][i]); err == nil && len(sum) == sha256.Size {
				key = digestOf(sum)
			}
		case hidden:
		case isNew && rows.values[i] != fresh.values, !isNew && rows.values[i] != old.values:
			k.wrong[other]++
		}
		if err := k.claims.Add(claim{id: claimOf(what, fresh, old, key), stated: true}); err != nil {
			return err
		}
	}
	return nil
}
