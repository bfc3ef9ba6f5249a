package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/parquet"

	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/transforms/hashed"
	"github.com/leadetl/leadetl/transforms/phone"
)

// checkColumn checks a leaf column by its own rules, while its values are in memory.
// The columns that it needs were read before.
func (g *groupFacts) checkColumn(column string, l *leaf, rules Rules) {
	if !isTogether(column) {
		g.checkSuppressed(column, l)
	}
	form, own := g.file.forms[column]
	if !own {
		return
	}
	g.checkForm(column, l, form)
	for _, d := range digestColumns {
		if rules.HashesKey && d.name == column {
			g.checkHashes(d, l.rowTexts())
		}
	}
	for _, p := range hashed.Of(hashed.Phone) {
		if p.Column == column && g.leaves["phone"] != nil {
			g.checkPhoneHashes(p, l.rowTexts())
		}
	}
}

// check compares columns with each other, and counts the rows.
func (g *groupFacts) check(rules Rules) {
	for _, column := range g.file.columns {
		if lower, ok := strings.CutSuffix(column.Name, "_min"); ok {
			g.checkBounds(lower+"_min", lower+"_max")
		}
	}
	for _, column := range slices.Sorted(maps.Keys(g.leaves)) {
		g.checkSuppressed(column, g.leaves[column])
	}
	outcomes := g.texts("outcome")
	g.countRows(outcomes)
	g.checkFolder(outcomes)
	g.checkOrder(rules.SeveralRows)
	g.checkKeys(outcomes)
	g.checkAnswers(outcomes)
	g.checkPhones()
	if rules.HashesKey && g.leaves["key"] == nil && g.hasEveryHash() {
		g.checkHashed(outcomes)
	}
}

// checkForm checks every value of a flat column.
func (g *groupFacts) checkForm(column string, l *leaf, form string) {
	if form == "" || l.Repetition != nil {
		return
	}
	text, number, fraction := textForm(form), numberForms[form], floatForms[form]
	problem := "it is not " + form
	if strings.HasPrefix(form, "from ") {
		problem = "it is not a number " + form
	}
	next := 0
	for i := range l.Count {
		if l.Definition != nil && l.Definition[i] < l.MaxDefinition {
			continue
		}
		ok := true
		switch {
		case text != nil && next < len(l.Texts):
			ok = text(l.Texts[next])
		case number != nil && next < len(l.Numbers):
			ok = number(l.Numbers[next])
		case fraction != nil && next < len(l.Floats):
			ok = fraction(l.Floats[next])
		}
		next++
		if !ok {
			g.found.report(i, column, problem)
		}
	}
}

// checkBounds compares the two ends of ranges.
func (g *groupFacts) checkBounds(lower, upper string) {
	least, hasLeast := g.numbers(lower)
	most, hasMost := g.numbers(upper)
	for i := range min(len(least), len(most)) {
		if hasLeast[i] && hasMost[i] && least[i] > most[i] {
			g.found.report(i, lower, "it is larger than "+upper)
		}
	}
}

// countRows counts outcomes and reasons. Exactly the rows that are not matched have a
// reason.
func (g *groupFacts) countRows(outcomes []parquet.ByteArray) {
	t := &g.totals
	t.Rows = g.rows
	counts := t.ByOutcome()
	reasons := g.texts("reason")
	for i, outcome := range outcomes {
		n, known := counts[string(outcome)]
		if !known {
			continue // checkForm has found it
		}
		*n++
		var reason []byte
		if i < len(reasons) {
			reason = reasons[i]
		}
		switch matched := string(outcome) == "matched"; {
		case matched && reason != nil:
			g.found.report(i, "reason", "a matched row has no reason")
		case !matched && reason == nil:
			g.found.report(i, "reason", "a row that is not matched needs a reason")
		case !matched:
			t.CountReason(string(outcome), string(reason), 1)
		}
	}
}

// countMalformed counts the lines of a file of rejects by reason.
func (g *groupFacts) countMalformed() {
	for _, reason := range g.texts("reason") {
		g.totals.CountReason("malformed", string(reason), 1)
	}
}

// checkOrder looks for rows that are not in the order of the input, and counts
// the input rows.
func (g *groupFacts) checkOrder(several bool) {
	sources := g.texts("source")
	rows, _ := g.numbers("source_row")
	if len(sources) == 0 || len(rows) != len(sources) {
		return
	}
	parts, _ := g.numbers("source_part")
	runs(sources, func(from, to int) {
		g.inputs++
		for i := from + 1; i < to; i++ {
			if i < len(parts) && rows[i] == rows[i-1] && parts[i] <= parts[i-1] {
				g.found.report(i, "source_part", "it is not after that of the row before, which is of the same input row")
			}
			if problem := orderProblem(true, rows[i-1], rows[i], several); problem != "" {
				g.found.report(i, "source_row", problem)
			}
			if rows[i] != rows[i-1] {
				g.inputs++
			}
		}
	})
	end := len(rows) - 1
	g.first, g.last = &inputRow{string(sources[0]), rows[0]}, &inputRow{string(sources[end]), rows[end]}
}

// ofSuppressed are the columns of a row of a suppressed person: its place in the input,
// its outcome and what its answer cost.
var ofSuppressed = map[string]bool{
	"source": true, "source_row": true, "outcome": true, "reason": true, "answered_by": true, "credits": true, "search_row": true, "source_part": true,
}

// findSuppressed remembers the rows of suppressed people, after the outcomes are read.
func (g *groupFacts) findSuppressed() {
	g.suppressed = make([]bool, g.rows)
	for i, outcome := range g.texts("outcome") {
		g.suppressed[i] = string(outcome) == "suppressed"
	}
	g.anySuppressed = slices.Contains(g.suppressed, true)
}

// checkSuppressed looks for values in rows of suppressed people, also in columns kept
// from the input.
func (g *groupFacts) checkSuppressed(path string, l *leaf) {
	column, _, _ := strings.Cut(path, ".")
	if _, own := g.file.forms[column]; own && ofSuppressed[column] || l.Definition == nil {
		return
	}
	if !g.anySuppressed {
		return
	}
	row := -1
	for i, definition := range l.Definition {
		if l.Repetition != nil && l.Repetition[i] > 0 {
			continue
		}
		if row++; definition > 0 && g.suppressed[row] {
			g.found.report(row, column, "a suppressed row has no value here")
		}
	}
}

// checkFolder checks that rows of suppressed people are not in the folder of a value.
func (g *groupFacts) checkFolder(outcomes []parquet.ByteArray) {
	for i := 0; g.file.valued && i < len(outcomes); i++ {
		if string(outcomes[i]) == "suppressed" {
			g.found.report(i, "outcome", "a suppressed row is in the folder of a value")
		}
	}
}

// checkKeys checks that a row has a key unless it was rejected or suppressed.
func (g *groupFacts) checkKeys(outcomes []parquet.ByteArray) {
	keys := g.texts("key")
	for i := range min(len(keys), len(outcomes)) {
		switch outcome := string(outcomes[i]); {
		case outcome == "suppressed": // checkSuppressed checks it
		case outcome == "rejected" && keys[i] != nil:
			g.found.report(i, "key", "a rejected row has no key")
		case outcome != "rejected" && keys[i] == nil:
			g.found.report(i, "key", "the key is missing; only rejected rows have none")
		}
	}
}

// checkAnswers checks that matches and rows with a price have an answer.
func (g *groupFacts) checkAnswers(outcomes []parquet.ByteArray) {
	by := g.texts("answered_by")
	_, priced := g.numbers("credits")
	for i := range min(len(by), len(outcomes)) {
		if by[i] != nil {
			continue
		}
		if string(outcomes[i]) == "matched" {
			g.found.report(i, "answered_by", "a matched row needs to say who answered")
		}
		if i < len(priced) && priced[i] && !g.file.hasAsked { // a miss has a price, too
			g.found.report(i, "credits", "a row without an answer has a price")
		}
	}
}

// checkPhones checks that a number in canonical form has the answered number beside it,
// and that only such a number is valid or not.
func (g *groupFacts) checkPhones() {
	phones, raw := g.texts("phone"), g.texts("phone_raw")
	valid := g.leaves["phone_valid"]
	for i, phone := range phones {
		if phone != nil && i < len(raw) && raw[i] == nil {
			g.found.report(i, "phone", "phone_raw is missing")
		}
		if valid != nil && i < len(valid.Definition) && (valid.Definition[i] > 0) != (phone != nil) {
			g.found.report(i, "phone_valid", "exactly the rows with a phone have a value")
		}
	}
}

// checkPhoneHashes makes the digests of all phones in a profile again, and compares them.
func (g *groupFacts) checkPhoneHashes(p hashed.Profile, values []parquet.ByteArray) {
	phones := g.texts("phone")
	for i := range min(len(phones), len(values)) {
		number := phone.Number{E164: string(phones[i])}
		sum := sha256.Sum256([]byte(number.Form(p.Phone)))
		switch {
		case phones[i] == nil && values[i] != nil:
			g.found.report(i, p.Column, "a row without a phone has a hash of one")
		case phones[i] != nil && string(values[i]) != hex.EncodeToString(sum[:]):
			g.found.report(i, p.Column, "not the hash of the phone")
		}
	}
}

// digestColumns are the columns with digests of a key.
var digestColumns = []digestColumn{
	{"hem_md5", 32, func(to, data []byte, offsets []int32) { hashlanes.Hex(to, nil, nil, data, offsets) }},
	{"hem_sha1", 40, func(to, data []byte, offsets []int32) { hashlanes.Hex(nil, to, nil, data, offsets) }},
	{"hem_sha256", 64, func(to, data []byte, offsets []int32) { hashlanes.Hex(nil, nil, to, data, offsets) }},
}

type digestColumn struct {
	name string
	hex  int                                    // characters
	hash func(to, data []byte, offsets []int32) // as hashlanes.Hex
}

// hashBytes is about how many bytes of keys are hashed at a time.
const hashBytes = 4 << 20

// checkHashes makes the digests of all keys that are addresses again, and compares
// them. A key that is a digest is in the column of its kind.
func (g *groupFacts) checkHashes(d digestColumn, values []parquet.ByteArray) {
	if g.hashed == nil {
		g.hashed = make([]bool, g.rows)
	}
	for i, value := range values {
		g.hashed[i] = g.hashed[i] || value != nil
	}
	keys := g.texts("key")
	var data, digests []byte
	offsets := []int32{0}
	for from := 0; from < min(len(keys), len(values)); {
		to := from
		for data, offsets = data[:0], offsets[:1]; to < len(keys) && len(data) < hashBytes; to++ {
			data = append(data, keys[to]...)
			offsets = append(offsets, int32(len(data)))
		}
		digests = slices.Grow(digests[:0], (to-from)*d.hex)[:(to-from)*d.hex]
		d.hash(digests, data, offsets)
		for i := from; i < to; i++ {
			if problem := d.problem(keys[i], values[i], digests[(i-from)*d.hex:]); problem != "" {
				g.found.report(i, d.name, problem)
			}
		}
		from = to
	}
}

// problem describes what is wrong with the digest of a key; "" if nothing is. digest is
// the right one if the key is an address.
func (d digestColumn) problem(key, value, digest []byte) string {
	switch {
	case key == nil:
		if value != nil {
			return "a row without a key has a hash"
		}
	case bytes.IndexByte(key, '@') >= 0:
		if !bytes.Equal(value, digest[:d.hex]) {
			return "not the hash of the key"
		}
	case len(key) == d.hex && value == nil: // a key that is a digest; a service found another kind
		return "the hash is missing; the key is one of this kind"
	}
	return ""
}

// checkHashed checks that a matched row has at least one hash if the dataset has no
// keys. For an input that is a hash, only a service may know the others.
func (g *groupFacts) checkHashed(outcomes []parquet.ByteArray) {
	for i := range min(len(outcomes), len(g.hashed)) {
		if string(outcomes[i]) == "matched" && !g.hashed[i] {
			g.found.report(i, g.hashColumn(), "a matched row needs at least one hash")
		}
	}
}

// hasEveryHash reports whether there is a column for each kind of hash: a key that is a hash
// has none of another kind.
func (g *groupFacts) hasEveryHash() bool {
	for _, d := range digestColumns {
		if g.columns[d.name] == nil {
			return false
		}
	}
	return true
}

// hashColumn returns the last column of hashes.
func (g *groupFacts) hashColumn() (name string) {
	for _, d := range digestColumns {
		if g.columns[d.name] != nil {
			name = d.name
		}
	}
	return name
}
