package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/typed"
)

// origins compares what the rows say of several resolvers with what these have answered. It reads a
// few columns of sound files once more, one part after another, so that the keys of one part are in
// memory.
func (c *checker) origins(ctx context.Context, files []*parquetFile) error {
	for i := range c.result.Manifest.Parts {
		p := &c.result.Manifest.Parts[i]
		if p.Asked == nil || !c.ruled {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(files), func(f *parquetFile) bool { return f.part != i || f.outcome != "" })
		if slices.ContainsFunc(of, func(f *parquetFile) bool { return !f.whole() }) {
			continue // it has a failure already
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.originsOf(p, of); err != nil {
			return err
		}
	}
	return nil
}

// asked is what resolvers have answered about the keys of a part.
type asked struct {
	resolvers map[string]int // their bits
	keys      map[uint64]askedKey
	hasKeys   bool // identifiers are not dropped
	chosen    bool // the rows may not have all columns
	persons   bool // rows of one key may be about several persons
	totals    sinks.Totals
}

// askedKey is what is known of a key, by its hash: resolvers are bits.
type askedKey struct {
	matched, answered, open, unknown uint32
	credits                          int64
	unpriced, seen                   bool
	persons                          bool // a resolver has answered about several persons with it
}

// maxResolvers is the number of bits.
const maxResolvers = 32

func (c *checker) originsOf(p *sinks.Part, files []*parquetFile) error {
	a := &asked{resolvers: map[string]int{}, keys: map[uint64]askedKey{}, chosen: c.result.Manifest.Selected() != nil, persons: c.result.Manifest.HasPersons()}
	for _, f := range files {
		if f.isPart {
			continue
		}
		a.hasKeys = len(f.columns) == len(c.rules.Asked)
		all := func(string) bool { return true }
		if err := c.eachGroup(f, all, func(g *groupFacts) { a.take(g, p.Totals.Suppressed > 0) }); err != nil {
			return err
		}
	}
	for _, f := range files {
		if !f.isPart {
			continue
		}
		if err := c.eachGroup(f, f.isOrigin, a.check); err != nil {
			return err
		}
	}
	a.compare(c, p)
	return nil
}

// isOrigin reports whether a column is own, and says something about the origin of values.
func (f *parquetFile) isOrigin(column string) bool {
	_, own := f.forms[column]
	return own && (slices.Contains([]string{"key", "outcome", "reason", "credits", skippedColumn}, column) || strings.HasSuffix(column, byColumn))
}

const (
	byColumn      = "answered_by"
	skippedColumn = "resolvers_skipped"
)

// eachGroup reads columns of the row groups of a sound file.
func (c *checker) eachGroup(f *parquetFile, columns func(string) bool, do func(*groupFacts)) (err error) {
	opened, err := c.dataset.Open(f.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	reader, err := typed.Open(f.Name, opened, opened.Size)
	if err != nil {
		return err
	}
	before := int64(0)
	for i, group := range f.foot.groups {
		g := &groupFacts{file: f, rows: group.rows, found: rowFindings{file: f.Name, rowGroup: i + 1, before: before}, leaves: map[string]*leaf{}}
		for j, chunk := range group.chunks {
			if columns(chunk.path) {
				if g.leaves[chunk.path], err = readLeaf(reader, i, j, c.spare.get(chunk.physical)); err != nil {
					return err
				}
			}
		}
		do(g)
		c.found.report(g.found.list...)
		g.release(&c.spare)
		before += group.rows
	}
	return nil
}

// bit is that of a resolver; 0 if it has said nothing.
func (a *asked) bit(resolver string) uint32 {
	if n, known := a.resolvers[resolver]; known {
		return 1 << n
	}
	return 0
}

// take takes the answers of a row group.
func (a *asked) take(g *groupFacts, suppresses bool) {
	keys, resolvers, outcomes, reasons, ids := g.texts("key"), g.texts("resolver"), g.texts("outcome"), g.texts("reason"), g.texts("request_id")
	credits, priced := g.numbers("credits")
	_, open := g.numbers("max_credits_open")
	for i := range resolvers {
		name, matched := string(resolvers[i]), string(outcomes[i]) == "matched"
		n := sinks.ResolverTotals{Asked: 1, Credits: credits[i]}
		if matched {
			n.Matched = 1
		}
		a.totals.CountResolver(name, n)
		if _, known := a.resolvers[name]; !known && len(a.resolvers) < maxResolvers {
			a.resolvers[name] = len(a.resolvers)
		}
		switch {
		case open[i] && (priced[i] || matched):
			g.found.report(i, "max_credits_open", "an open call has no answer")
		case !a.hasKeys:
			continue
		case keys[i] == nil && !suppresses:
			g.found.report(i, "key", "the key is missing, and no row of the part is suppressed")
		case keys[i] == nil && ids[i] != nil:
			g.found.report(i, "request_id", "a suppressed key has no value here")
		}
		if keys[i] == nil {
			continue
		}
		hash, bit := xxh3.Hash(keys[i]), a.bit(name)
		k := a.keys[hash]
		switch {
		case open[i] && string(reasons[i]) == outcome.ReasonUnknownCall:
			k.open, k.unknown = k.open|bit, k.unknown|bit
		case open[i]:
			k.open |= bit
		default:
			k.persons = k.persons || a.persons && k.answered&bit != 0
			k.answered, k.credits, k.unpriced = k.answered|bit, k.credits+credits[i], k.unpriced || !priced[i]
		}
		if matched {
			k.matched |= bit
		}
		a.keys[hash] = k
	}
}

// check compares the rows of a row group with the answers, and counts what the resolvers have added.
func (a *asked) check(g *groupFacts) {
	keys, outcomes, reasons, skipped := g.texts("key"), g.texts("outcome"), g.texts("reason"), g.texts(skippedColumn)
	credits, priced := g.numbers("credits")
	var by []string
	for _, column := range slices.Sorted(maps.Keys(g.leaves)) {
		if strings.HasSuffix(column, byColumn) {
			by = append(by, column)
		}
	}
	columns := map[string][]string{} // of by
	for _, column := range by {
		for _, name := range g.texts(column) {
			columns[column] = append(columns[column], string(name))
		}
	}
	for i := range int(g.rows) {
		a.count(columns, i)
		noted := ""
		if i < len(skipped) {
			noted = string(skipped[i])
		}
		a.totals.CountPassed(outcome.AskedLater(noted))
		if i >= len(keys) || keys[i] == nil || !a.hasKeys {
			continue
		}
		hash := xxh3.Hash(keys[i])
		k, known := a.keys[hash]
		if known && !k.seen {
			k.seen = true
			a.keys[hash] = k
		}
		for _, column := range by {
			if name := columns[column][i]; name != "" && k.matched&a.bit(name) == 0 {
				g.found.report(i, column, "the resolver has no match for the key in "+sinks.AskedFolder)
			}
		}
		if i < len(priced) && k.answered&k.open == 0 { // else it has answered between two rows
			some := k.persons && credits[i] <= k.credits
			if priced[i] && !some && (k.unpriced || credits[i] != k.credits) || !priced[i] && k.answered != 0 && !k.unpriced {
				g.found.report(i, "credits", "it is not the sum of the answers in "+sinks.AskedFolder)
			}
		}
		if i < len(reasons) && i < len(outcomes) {
			a.checkUnknown(g, i, k, string(outcomes[i]), string(reasons[i]), noted)
		}
	}
}

// checkUnknown compares the rows that failed for an unknown call with the unknown calls. A row
// without a match says which calls it went on without.
func (a *asked) checkUnknown(g *groupFacts, i int, k askedKey, ended, reason, noted string) {
	if name, unknown := strings.CutPrefix(reason, outcome.ReasonUnknownCall+":"); unknown && ended == outcome.Failed.String() && k.unknown&a.bit(name) == 0 {
		g.found.report(i, "reason", "the unknown call is not in "+sinks.AskedFolder)
	}
	if ended != outcome.NoMatch.String() || k.unknown == 0 || a.chosen || a.persons {
		return
	}
	for name := range a.resolvers {
		if k.unknown&a.bit(name) != 0 && !strings.Contains(noted, name+":"+outcome.ReasonUnknownCall) {
			g.found.report(i, "outcome", "the key has an unknown call in "+sinks.AskedFolder)
		}
	}
}

// count counts the resolvers that a row has wanted values of, and whether it has all these.
func (a *asked) count(columns map[string][]string, i int) {
	var names []string
	complete := len(columns) > 1
	for column, values := range columns {
		name := values[i]
		complete = complete && name != ""
		if name != "" && (column != byColumn || len(columns) == 1) && !slices.Contains(names, name) {
			names = append(names, name)
			a.totals.CountResolver(name, sinks.ResolverTotals{Added: 1})
		}
	}
	if complete {
		a.totals.Complete++
	}
}

// compare compares the counts of a part with those in the manifest, and looks for answers about
// other keys. Columns that the job has not chosen cannot be counted.
func (a *asked) compare(c *checker, p *sinks.Part) {
	got, want := maps.Clone(a.totals.Resolvers), maps.Clone(p.Totals.Resolvers)
	if a.chosen {
		for _, totals := range []map[string]sinks.ResolverTotals{got, want} {
			maps.DeleteFunc(totals, func(_ string, n sinks.ResolverTotals) bool { return n.Asked == 0 })
			for name, n := range totals {
				n.Added, n.Passed, n.Unknown = 0, 0, 0
				totals[name] = n
			}
		}
	}
	if !maps.Equal(got, want) {
		c.found.report(Failure{File: p.Asked.Name, Column: "resolver", Problem: "the counts by resolver differ from the manifest"})
	}
	if got, want := a.totals.Complete, p.Totals.Complete; got != want && !a.chosen {
		c.found.report(Failure{File: p.Asked.Name, Problem: fmt.Sprintf("%d rows have all that is wanted, and the manifest says %d", got, want)})
	}
	strange := 0
	for _, k := range a.keys {
		if !k.seen {
			strange++
		}
	}
	if strange > 0 && c.hasOwn("key") {
		c.found.report(Failure{File: p.Asked.Name, Column: "key", Problem: fmt.Sprintf("%d keys are of no row of the part", strange)})
	}
}

// hasOwn reports whether the dataset has a column that is not kept from the input.
func (c *checker) hasOwn(name string) bool {
	return slices.ContainsFunc(c.result.Manifest.Own(), func(column sinks.Column) bool { return column.Name == name })
}
