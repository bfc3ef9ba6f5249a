package provider

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/yamltree"
)

// maxPrice bounds a price in credits.
const maxPrice = 1_000_000

func (r *reader) price(n *yamltree.Node) Price {
	p := Price{Match: 1}
	if n == nil {
		p.Later = p.Match
		return p
	}
	m := r.members(n, "match", "no_match", "bad_row", "later")
	p.Match = r.count(m["match"], 1, 0, maxPrice)
	p.NoMatch = r.count(m["no_match"], 0, 0, maxPrice)
	p.BadRow = r.count(m["bad_row"], 0, 0, maxPrice)
	p.Later = r.count(m["later"], p.Match, 0, maxPrice)
	return p
}

// rulePrice reads what the answers cost that fit a rule; nil if it does not say it.
func (r *reader) rulePrice(n *yamltree.Node, of Outcome) *int64 {
	if n == nil {
		return nil
	}
	if of != Match && of != NoMatch && of != BadRow {
		r.fail(n, "a price stands beside match, no_match or bad_row, not beside %s", named(of))
	}
	price := r.count(n, 0, 0, maxPrice)
	return &price
}

// cost reads where an answer says what it cost.
func (r *reader) cost(n *yamltree.Node) (f figure) {
	text := r.text(n)
	if text == "" {
		return f
	}
	kind, where, _ := strings.Cut(text, " ")
	switch where = strings.TrimSpace(where); {
	case kind == "header" && isHeaderName(where):
		f.header = where
	case kind == "body" && where != "":
		p, err := parsePath(where)
		r.failed(n, err)
		f.body, f.isBody = p, true
	default:
		r.fail(n, "cost is `header NAME` or `body PATH`, which say what this request cost")
	}
	return f
}

// unit reads what a cost is multiplied with: 1 if it is not given.
func (r *reader) unit(n *yamltree.Node) *big.Rat {
	text := r.text(n)
	if text == "" {
		return big.NewRat(1, 1)
	}
	unit, is := decimal(text)
	if !is || unit.Sign() <= 0 {
		r.fail(n, "unit is a number above 0, such as 10")
		return big.NewRat(1, 1)
	}
	return unit
}

var plainDecimal = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)

// decimal reads a number from 0 without an exponent.
func decimal(text string) (*big.Rat, bool) {
	if !plainDecimal.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// headerName reads `header NAME`.
func (r *reader) headerName(n *yamltree.Node) string {
	text := r.text(n)
	if text == "" {
		return ""
	}
	name, is := strings.CutPrefix(text, "header ")
	if name = strings.TrimSpace(name); !is || !isHeaderName(name) {
		r.fail(n, "%s is `header NAME`", titled(n))
	}
	return name
}

func isHeaderName(s string) bool {
	return s != "" && len(s) <= 100 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// rates reads one or several limits.
func (r *reader) rates(n *yamltree.Node) (all []Rate) {
	for _, one := range r.texts(n) {
		rate, is := ParseRate(one.Text)
		if !is {
			r.fail(one, "%s is no rate: write 100/min, 15/s or 1000 keys/hour", quoted(one.Text))
		}
		all = append(all, rate)
	}
	return all
}

var rateForm = regexp.MustCompile(`^([0-9]{1,9})( keys)?/(s|sec|second|min|minute|h|hour|day)$`)

var rateUnits = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "day": 24 * time.Hour,
}

// ParseRate reads a limit such as 100/min or 1000 keys/hour.
func ParseRate(text string) (Rate, bool) {
	m := rateForm.FindStringSubmatch(text)
	if m == nil {
		return Rate{}, false
	}
	n, err := strconv.Atoi(m[1])
	return Rate{Count: n, Per: rateUnits[m[3]], Keys: m[2] != ""}, err == nil && n > 0
}
