package provider

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/yamltree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
)

// bounds are those of a file of entries.
var bounds = yamltree.Bounds{Bytes: 64 << 10, Entries: 4096}

// maxProblems bounds the problems that are listed.
const maxProblems = 50

// Parse reads a provider file. file is its name in errors, which are joined: FILE:LINE: what is
// wrong.
func Parse(file string, content []byte) (Entries, error) {
	all := Entries{}
	err := readFile(file, content, func(r *reader, n *yamltree.Node) { all[n.Name] = r.entry(n) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// readFile calls read with each member of a file, and returns what is wrong by line.
func readFile(file string, content []byte, read func(*reader, *yamltree.Node)) error {
	root, err := yamltree.Parse(content, bounds)
	if failed, is := errors.AsType[*yamltree.Error](err); is {
		return fmt.Errorf("%s:%d: %s", file, failed.Line, failed.What)
	}
	r := &reader{file: file}
	if len(root.Items) == 0 {
		r.fail(root, "the file is empty")
	}
	for i, n := range root.Items {
		if len(r.problems) == maxProblems {
			break
		}
		r.once(root, i)
		read(r, n)
	}
	slices.SortStableFunc(r.problems, func(a, b problem) int { return int(a.line - b.line) })
	var all []error
	for _, p := range slices.Compact(r.problems) { // a value for several keys has one for each
		all = append(all, fmt.Errorf("%s:%d: %s", file, p.line, p.what))
	}
	return errors.Join(all...)
}

// Names are the names of the entries in order.
func (e Entries) Names() []string { return slices.Sorted(maps.Keys(e)) }

// reader reads a file, and collects what is wrong with it.
type reader struct {
	file     string
	problems []problem
	warnings []string // of the entry
	language int      // bytes of rules and paths so far
}

type problem struct {
	line int32
	what string
}

func (r *reader) fail(n *yamltree.Node, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, problem{n.Line, fmt.Sprintf(format, args...)})
	}
}

// failed is fail with an error, if there is one.
func (r *reader) failed(n *yamltree.Node, err error) {
	if err != nil {
		r.fail(n, "%v", err)
	}
}

// members are those of a map, by their names, which are among known.
func (r *reader) members(n *yamltree.Node, known ...string) map[string]*yamltree.Node {
	found := map[string]*yamltree.Node{}
	if n.Kind != yamltree.Map {
		r.fail(n, "%s has keys of its own, such as %s", titled(n), known[0])
		return found
	}
	for i, m := range n.Items {
		if len(r.problems) == maxProblems {
			break
		}
		r.once(n, i)
		if !slices.Contains(known, m.Name) {
			r.fail(m, "%s is no key of %s%s", quoted(m.Name), titled(n), suggest(m.Name, known))
			continue
		}
		found[m.Name] = m
	}
	return found
}

// once refuses a member that is given twice.
func (r *reader) once(of *yamltree.Node, i int) {
	if of.IsRepeated(i) {
		r.fail(of.Items[i], "%.60s is given twice", of.Items[i].Name)
	}
}

// titled names a value for a message.
func titled(n *yamltree.Node) string {
	if n.Name == "" {
		return "this value"
	}
	return quoted(n.Name)
}

// text is a value that is text, "" with a problem if it is none. A missing value is "".
func (r *reader) text(n *yamltree.Node) string {
	switch {
	case n == nil:
		return ""
	case n.Kind == yamltree.Map && len(n.Items) == 1 && n.Items[0].Kind == yamltree.Null:
		r.fail(n, "%s is text; quote the placeholder: \"{%s}\"", titled(n), n.Items[0].Name)
	case n.Kind == yamltree.Null || n.Kind == yamltree.Text && n.Text == "":
		r.fail(n, "%s has no value", titled(n))
	case n.Kind != yamltree.Text:
		r.fail(n, "%s is text", titled(n))
	}
	return n.Text
}

// texts is a value that is a text or a list of texts.
func (r *reader) texts(n *yamltree.Node) []*yamltree.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == yamltree.List:
		for _, item := range n.Items {
			r.text(item)
		}
		return n.Items
	}
	r.text(n)
	return []*yamltree.Node{n}
}

// maxLanguage bounds the rules and paths of a file, in bytes. They take 30 times as much memory.
const maxLanguage = 16 << 10

// isBounded reports whether the rules and paths of a file are within their bound with another one.
func (r *reader) isBounded(n *yamltree.Node, text string) bool {
	before := r.language
	r.language += len(text)
	if before <= maxLanguage && r.language > maxLanguage {
		r.fail(n, "the rules and paths of the file have more than %d KiB; write several files", maxLanguage>>10)
	}
	return r.language <= maxLanguage
}

// path is a value that is a path; nil without one.
func (r *reader) path(n *yamltree.Node) *path {
	text := r.text(n)
	if text == "" || !r.isBounded(n, text) {
		return nil
	}
	p, err := parsePath(text)
	r.failed(n, err)
	return &p
}

// count is a value that is a whole number; otherwise without one.
func (r *reader) count(n *yamltree.Node, otherwise, least, most int64) int64 {
	text := r.text(n)
	if text == "" {
		return otherwise
	}
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil || count < least || count > most || !isDigits(text) {
		r.fail(n, "%s is a whole number from %d to %d", titled(n), least, most)
	}
	return count
}

// boolean is a value that is true or false.
func (r *reader) boolean(n *yamltree.Node, otherwise bool) bool {
	switch text := r.text(n); text {
	case "":
		return otherwise
	case "true", "false":
		return text == "true"
	}
	r.fail(n, "%s is true or false", titled(n))
	return otherwise
}

// duration is a value such as 30s.
func (r *reader) duration(n *yamltree.Node, otherwise, least, most time.Duration) time.Duration {
	text := r.text(n)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		r.fail(n, "%s is a time from %s to %s, such as 30s or 2h", titled(n), least, most)
	}
	return d
}

// entryKeys are the keys of an entry.
var entryKeys = []string{
	"base", "key", "ask", "batch", "later", "price", "cost", "unit", "rate", "limit", "retry", "check", "echo", "answers", "fields", "helper", "headers", "documented",
}

// entry reads an entry.
func (r *reader) entry(n *yamltree.Node) *Entry {
	r.warnings = nil
	e := &Entry{Name: n.Name, requests: map[resolution.Identifier]*Request{}}
	if !isName(n.Name) {
		r.fail(n, "%s is no name of a provider: write 1 to 40 lower-case letters, digits, - and _, and neither embedded, service nor directory", quoted(n.Name))
	}
	m := r.members(n, entryKeys...)
	for _, key := range []string{"base", "key", "answers", "fields"} {
		if m[key] == nil && n.Kind == yamltree.Map {
			r.fail(n, "%s has no %s", titled(n), key)
		}
	}
	e.Documented = r.text(m["documented"])
	e.base = r.base(m["base"])
	e.headers = r.headers(m["headers"])
	e.key = r.credential(m["key"])
	e.Price = r.price(m["price"])
	e.cost, e.unit = r.cost(m["cost"]), r.unit(m["unit"])
	e.Rate = r.rates(m["rate"])
	e.limit = r.headerName(m["limit"])
	e.RetryBills = !r.boolean(m["retry"], true)
	e.Check = r.check(m["check"])
	for _, helper := range r.texts(m["helper"]) {
		r.helper(helper)
		e.helpers = append(e.helpers, helper.Text)
	}
	e.echo = r.path(m["echo"])
	e.rules = r.rules(m["answers"])
	e.fields = r.fields(m["fields"], e)
	r.later(m["later"], e)
	r.requests(m["ask"], m["batch"], n, e)
	if len(r.problems) == 0 {
		r.consistent(n, m, e)
	}
	e.warnings = r.warnings
	if len(r.problems) == 0 {
		e.finish()
	}
	return e
}

// isName reports whether an entry may have a name.
func isName(s string) bool {
	return s != "" && len(s) <= 40 && !slices.Contains([]string{"embedded", "service", "directory"}, s) &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

func (r *reader) base(n *yamltree.Node) *url.URL {
	text := r.text(n)
	if text == "" {
		return nil
	}
	u, err := parseBase(text)
	r.failed(n, err)
	return u
}

// parseBase reads the address that all requests begin with.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Hostname() == "":
		return nil, errors.New("base is an address such as https://api.example.com")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("base has neither a user nor a query nor a fragment")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, errors.New("base begins with https://; http:// is for this machine alone")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("base begins with https://")
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

func (r *reader) check(n *yamltree.Node) resolution.Identifier {
	switch kind := resolution.Identifier(r.text(n)); kind {
	case "", resolution.Email, resolution.Phone:
		return kind
	}
	r.fail(n, "check is email or phone")
	return ""
}

// helper checks the name of a helper.
func (r *reader) helper(n *yamltree.Node) {
	switch {
	case slices.Contains(fillable(), n.Text):
		r.fail(n, "%s is a column; helpers have other names", n.Text)
	case strings.Trim(n.Text, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || len(n.Text) > 60:
		r.fail(n, "%s is no name of a helper: write lower-case letters, digits and _", quoted(n.Text))
	}
}

// rules reads a list of rules.
func (r *reader) rules(n *yamltree.Node) (all []rule) {
	if n == nil {
		return nil
	}
	if n.Kind != yamltree.List || len(n.Items) == 0 {
		r.fail(n, "%s is a list of rules such as `- match: 200 data`", titled(n))
		return nil
	}
	if len(n.Items) > maxRules {
		r.fail(n, "%s has more than %d rules", titled(n), maxRules)
		return nil
	}
	for _, item := range n.Items {
		one, price := r.ruleOf(item)
		if one == nil {
			continue
		}
		text := r.text(one)
		if text == "" || !r.isBounded(one, text) {
			continue
		}
		parsed, err := parseRule(one.Name, text)
		r.failed(one, err)
		parsed.line, parsed.price = one.Line, r.rulePrice(price, parsed.outcome)
		if warning := parsed.warning(); warning != "" {
			r.warnings = append(r.warnings, fmt.Sprintf("%s:%d: %s", r.file, one.Line, warning))
		}
		all = append(all, parsed)
	}
	return all
}

// ruleOf returns the outcome of an item with what stands behind it, and the price beside it, if there
// is one.
func (r *reader) ruleOf(item *yamltree.Node) (one, price *yamltree.Node) {
	if item.Kind == yamltree.Map {
		for _, m := range item.Items {
			if m.Name == "price" {
				price = m
			} else {
				one = m
			}
		}
	}
	if one == nil || len(item.Items) > 2 || len(item.Items) == 2 && price == nil {
		r.fail(item, "a rule has the form `- match: 200 data`, or with a price of its own `- {match: 200 data, price: 0}`")
		return nil, nil
	}
	return one, price
}

// fields reads where the values of columns are.
func (r *reader) fields(n *yamltree.Node, e *Entry) (f fields) {
	if n == nil {
		return f
	}
	f.one, f.many = map[string]alternatives{}, map[string]elements{}
	for name, field := range r.members(n, slices.Concat(fillable(), e.helpers)...) {
		v := values.ByName[name]
		isList := v != nil && v.IsList()
		switch {
		case isList && field.Kind == yamltree.Map:
			word := v.Element()
			m := r.members(field, "each", word, "type")
			if m["each"] == nil {
				r.fail(field, "%s has no each, the path to a list", name)
			}
			f.many[name] = elements{each: r.alternatives(m["each"]), value: r.alternatives(m[word]), kind: r.alternatives(m["type"])}
		case isList:
			f.many[name] = elements{each: r.alternatives(field)}
		default:
			f.one[name] = r.alternatives(field)
			if v != nil && v.Text > 0 && v.Kind == values.Plain && f.one[name] != nil {
				f.texts = append(f.texts, textField{v.Text, f.one[name]})
			}
		}
	}
	return f
}

func (r *reader) alternatives(n *yamltree.Node) alternatives {
	text := r.text(n)
	if text == "" || !r.isBounded(n, text) {
		return nil
	}
	all, err := parseAlternatives(text)
	r.failed(n, err)
	return all
}

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
