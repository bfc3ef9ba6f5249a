package provider

import (
	"cmp"
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

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leadetl/leadetl/internal/figures"
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
	err := readFile(file, content, schemas().entries, func(r *reader, n *yamltree.Node) { all[n.Name] = r.entry(n) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// readFile calls read with each member of a file of a schema, and returns what is wrong by line.
func readFile(file string, content []byte, by *jsonschema.Schema, read func(*reader, *yamltree.Node)) error {
	root, err := yamltree.Parse(content, bounds)
	if failed, is := errors.AsType[*yamltree.Error](err); is {
		return fmt.Errorf("%s:%d: %s", file, failed.Line, failed.What)
	}
	r := &reader{file: file}
	if len(root.Items) == 0 {
		r.fail(root, "the file is empty")
	}
	r.shape(root, by)
	for _, n := range root.Items {
		if len(r.problems) == maxProblems {
			break
		}
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
	file string
	problems
	warnings []string // of the entry
	language int      // bytes of rules and paths so far
}

// problems are what is wrong with a file.
type problems []problem

type problem struct {
	line int32
	what string
}

func (p *problems) fail(n *yamltree.Node, format string, args ...any) {
	if len(*p) < maxProblems {
		*p = append(*p, problem{n.Line, fmt.Sprintf(format, args...)})
	}
}

// warn notes what may not be meant.
func (r *reader) warn(n *yamltree.Node, format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, args...)))
}

// failed is fail with an error, if there is one.
func (p *problems) failed(n *yamltree.Node, err error) {
	if err != nil {
		p.fail(n, "%v", err)
	}
}

// titled names a value for a message.
func titled(n *yamltree.Node) string {
	if n.Name == "" {
		return "this value"
	}
	return quoted(n.Name)
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
	text := textOf(n)
	if text == "" || !r.isBounded(n, text) {
		return nil
	}
	p, err := parsePath(text)
	r.failed(n, err)
	return &p
}

// duration is a value such as 30s.
func (r *reader) duration(n *yamltree.Node, otherwise, least, most time.Duration) time.Duration {
	text := textOf(n)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		r.fail(n, "%s is a time from %s to %s, such as 30s or 2h", titled(n), least, most)
	}
	return d
}

// entry reads an entry. What its shape refuses is left out.
func (r *reader) entry(n *yamltree.Node) *Entry {
	r.warnings = nil
	m := members(n)
	e := &Entry{
		Name: n.Name, file: r.file, requests: map[resolution.Identifier]*Request{}, Documented: textOf(m["documented"]), Tried: textOf(m["tried"]), Price: price(m["price"]),
		Check: resolution.Identifier(textOf(m["check"])), RetryBills: textOf(m["retry"]) == "false",
	}
	for _, key := range []string{"documented", "tried"} {
		if day := textOf(m[key]); figures.IsNoDay(day) {
			r.fail(m[key], "%s is %s, a day that does not exist", quoted(key), day)
		}
	}
	e.base = r.base(m["base"])
	e.headers = r.headers(m["headers"])
	e.key = r.credential(m["key"])
	e.cost, e.unit = r.cost(m["cost"]), unit(m["unit"])
	for _, one := range listOf(m["rate"]) {
		rate, _ := ParseRate(one.Text)
		e.Rate = append(e.Rate, rate)
	}
	e.limit = strings.TrimSpace(strings.TrimPrefix(textOf(m["limit"]), "header "))
	if name := strings.ToLower(e.limit); strings.Contains(name, "credit") || strings.Contains(name, "balance") {
		r.warn(m["limit"], "limit says how many requests are left in a window; if %s counts credits, leave it out: calls would slow down as these end", e.limit)
	}
	for _, helper := range listOf(m["helper"]) {
		if slices.Contains(fillable(), helper.Text) {
			r.fail(helper, "%s is a column; helpers have other names", helper.Text)
		}
		e.helpers = append(e.helpers, helper.Text)
	}
	e.echo = r.path(m["echo"])
	e.rules = r.rules(m["answers"])
	e.fields = r.fields(m["fields"], e)
	r.later(m["later"], e)
	e.balance = r.balance(m["balance"])
	r.requests(m["ask"], m["batch"], e)
	if len(r.problems) == 0 {
		r.consistent(n, m, e)
	}
	e.warnings = r.warnings
	if len(r.problems) == 0 {
		e.finish()
	}
	return e
}

func (r *reader) base(n *yamltree.Node) *url.URL {
	text := textOf(n)
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

// rules reads a list of rules.
func (r *reader) rules(n *yamltree.Node) (all []rule) {
	if n == nil || len(n.Items) > maxRules {
		return nil
	}
	for _, item := range n.Items {
		m := members(item)
		for outcome, one := range m {
			if outcome == "price" || one.Text == "" || !r.isBounded(one, one.Text) {
				continue
			}
			parsed, err := parseRule(outcome, one.Text)
			r.failed(one, err)
			if parsed.line = one.Line; m["price"] != nil {
				price := count(m["price"], 0)
				parsed.price = &price
			}
			if warning := parsed.warning(); warning != "" {
				r.warn(one, "%s", warning)
			}
			all = append(all, parsed)
		}
	}
	return all
}

// fields reads where the values of columns are.
func (r *reader) fields(n *yamltree.Node, e *Entry) (f fields) {
	if n == nil {
		return f
	}
	f.one, f.many = map[string]alternatives{}, map[string]elements{}
	known := slices.Concat(fillable(), e.helpers)
	for name, field := range members(n) {
		v := values.ByName[name]
		switch {
		case !slices.Contains(known, name):
			r.fail(field, "%s is no key of %s%s", quoted(name), titled(n), cmp.Or(suggest(name, known), "; list it under helper if it serves accept alone"))
		case v != nil && v.IsList():
			m := members(field)
			if field.Kind != yamltree.Map {
				m["each"] = field
			}
			f.many[name] = elements{each: r.alternatives(m["each"]), value: r.alternatives(m[v.Element()]), kind: r.alternatives(m["type"])}
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
	text := textOf(n)
	if text == "" || !r.isBounded(n, text) {
		return nil
	}
	all, err := parseAlternatives(text)
	r.failed(n, err)
	return all
}

// price reads the prices of outcomes.
func price(n *yamltree.Node) Price {
	m := members(n)
	p := Price{Match: count(m["match"], 1), NoMatch: count(m["no_match"], 0), BadRow: count(m["bad_row"], 0)}
	p.Later = count(m["later"], p.Match)
	return p
}

// cost reads where an answer says what it cost.
func (r *reader) cost(n *yamltree.Node) (f figure) {
	kind, where, _ := strings.Cut(textOf(n), " ")
	switch where = strings.TrimSpace(where); kind {
	case "header":
		f.header = where
	case "body":
		p, err := parsePath(where)
		r.failed(n, err)
		f.body, f.isBody = p, true
	}
	return f
}

// unit reads what a cost is multiplied with: 1 if it is not given.
func unit(n *yamltree.Node) *big.Rat {
	if unit, is := decimal(textOf(n)); is {
		return unit
	}
	return big.NewRat(1, 1)
}

var plainDecimal = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)

// decimal reads a number from 0 without an exponent.
func decimal(text string) (*big.Rat, bool) {
	if !plainDecimal.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
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
