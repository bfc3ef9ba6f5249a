package provider

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/transforms/fiction"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Anonymous is an exchange as a documented answer: what the entry reads of it, with made-up values in the place
// of those of people. hosts are those of profiles. differences are what Differences says of it: what the entry
// does not say, such as a price. The error says why it cannot be told without its values.
func (x Exchange) Anonymous(name string, hosts []string) (text []byte, differences []string, err error) {
	if x.stored != nil && x.Request.batch != nil {
		if x.Response, x.isRebuilt = x.Request.batch.around(x.Keys[0], x.Verdicts[0]); !x.isRebuilt {
			return nil, nil, errors.New("what is stored of an answer to a batch does not say where it was in it; ask about other keys")
		}
	}
	known := exchange.NewAsked(profile.DefaultRules().Hosts)
	var all []Verdict
	for range 8 { // what is made up may happen to mean something
		made := x.fiction(hosts)
		all = made.Request.Judge(known, made.Response, made.Keys...)
		if same := slices.EqualFunc(all, x.Verdicts, func(a, b Verdict) bool {
			priced := (a.Credits == nil) == (b.Credits == nil) && (a.Credits == nil || *a.Credits == *b.Credits)
			return a.Outcome == b.Outcome && a.Rule == b.Rule && (priced || x.stored != nil) // what was booked may be by another price, or by a header
		}); !same {
			continue
		}
		made.Verdicts = all
		text = made.yaml(name)
		documented, err := ParseDocumented(x.Request.entry.Name+".answers.yaml", text)
		if err == nil {
			return text, x.Request.entry.Differences(documented[0]), nil
		}
	}
	return nil, nil, errors.New("the answer means something else without its values, so it is not saved")
}

// around is an answer to a batch of one key, of which the verdict has the element. It is false if a path does not
// say where that was.
func (b *batch) around(key string, v Verdict) (a Response, is bool) {
	known := exchange.NewAsked(nil)
	at, body, isMember := &b.answers, v.Body, b.id != nil && b.id.back == nil
	if len(body) == 0 { // it was in a list of ids
		if at, isMember = b.noMatch, false; at == nil {
			return a, false
		}
		body = appendQuoted(nil, b.ids(known, []string{key})[0])
	} else if b.as != "" {
		reading(body, func(v jsontree.Value) { body = rawJSON(v.Get(b.as)) })
	}
	member := func(name string) {
		body = slices.Concat([]byte("{"), appendQuoted(nil, name), []byte(": "), body, []byte("}"))
	}
	if isMember {
		member(b.ids(known, []string{key})[0])
	} else {
		body = slices.Concat([]byte("["), body, []byte("]"))
	}
	for _, s := range slices.Backward(*at) {
		if s.each || s.where != "" || s.index >= 0 {
			return a, false
		}
		member(s.name)
	}
	a = Response{Status: v.Status, Body: body}
	if b.status != nil {
		a.Status = http.StatusOK
	}
	return a, true
}

// fiction is the exchange with made-up values.
func (x Exchange) fiction(hosts []string) Exchange {
	made := x
	maker := fiction.New(hosts)
	for range 2 { // what is met later may be of the same person
		made.Keys = nil
		for _, key := range x.Keys {
			switch x.Request.kind {
			case resolution.Phone:
				key = maker.Phone(key)
			case resolution.Person:
				of := person.Values(key)
				for name, value := range of {
					of[name] = person.Canonical(name, maker.Text(value))
				}
				key = person.Key(of)
			default:
				key = maker.Text(key)
			}
			made.Keys = append(made.Keys, key)
		}
		w := writer{made: maker, ids: map[string]string{}, id: func(text string) string { return text }}
		if b := x.Request.batch; b != nil && b.id != nil {
			known := exchange.NewAsked(hosts)
			w.id = func(text string) string { return b.id.spelling(known, text) }
			new := b.ids(known, made.Keys)
			for i, id := range b.ids(known, x.Keys) {
				w.ids[id] = new[i]
			}
			if x.isRebuilt { // its id may be a number in the batch that it came with
				reading(x.Response.Body, func(v jsontree.Value) {
					all, _ := b.elements(received{x.Response.Status, v, false})
					w.ids[b.idOf(known, all[0])] = new[0]
				})
			}
		}
		made.Response.Body = x.body(w)
	}
	made.Message, _ = x.Request.Message(made.Keys...)
	made.Response.Header = http.Header{}
	for _, name := range []string{x.Request.entry.cost.header, x.Request.entry.limit} {
		if value := x.Response.Header.Get(name); name != "" && isFigure(value) {
			made.Response.Header.Set(name, value)
		}
	}
	return made
}

// body is what the entry reads of the answer.
func (x Exchange) body(w writer) (made []byte) {
	body := bytes.TrimSpace(bytes.TrimPrefix(x.Response.Body, []byte("\ufeff")))
	reading(body, func(v jsontree.Value) {
		switch {
		case len(v) > 0:
			w.reads = x.reads(v)
			made = w.value(nil, v)
		case bytes.HasPrefix(body, []byte("<")):
			made = []byte("<html></html>")
		case bytes.HasPrefix(body, []byte("{")), bytes.HasPrefix(body, []byte("[")):
			made = body[:1]
		case len(body) > 0:
			made = []byte("text")
		}
	})
	return made
}

// writer writes what is read of an answer.
type writer struct {
	reads *reads
	made  *fiction.Maker
	ids   map[string]string // by the ids of the request, in the spelling of id
	id    func(text string) string
}

// named is an id in the place of another one.
func (w writer) named(id string) string {
	if made, is := w.ids[w.id(id)]; is {
		return made
	}
	return w.made.Text(id)
}

func (w writer) value(to []byte, v jsontree.Value) []byte {
	one := w.reads.all[w.reads.place(v)]
	switch v.Kind() {
	case '{':
		return w.object(to, v, one)
	case '[':
		return w.list(to, v, one)
	}
	return w.scalar(to, v, one)
}

func (w writer) object(to []byte, v jsontree.Value, one *read) []byte {
	to = append(to, '{')
	empty := len(to)
	for m := range v.Inside().All() {
		name := m.Name()
		if !w.reads.any(m) || w.reads.place(v.Get(name)) != w.reads.place(m) { // of several, the last one counts
			continue
		}
		if is := w.reads.all[w.reads.place(m)]; is != nil && is.isNamed {
			name = w.named(name)
		}
		if len(to) > empty {
			to = append(to, ", "...)
		}
		to = append(appendText(to, name), ": "...)
		to = w.value(to, m)
	}
	if len(to) == empty && one != nil && len(v) > 1 { // it is looked at whether it is empty
		to = append(to, `"other": ""`...)
	}
	return append(to, '}')
}

func (w writer) list(to []byte, v jsontree.Value, one *read) []byte {
	n, last := 0, -1
	for item := range v.Inside().All() {
		if w.reads.any(item) {
			last = n
		}
		n++
	}
	if last < 0 && one != nil && n > 0 {
		last = 0
	}
	to, n = append(to, '['), 0
	for item := range v.Inside().All() {
		if n > last {
			break
		}
		if n > 0 {
			to = append(to, ", "...)
		}
		if n++; w.reads.any(item) {
			to = w.value(to, item)
		} else {
			to = append(to, map[byte]string{'{': "{}", '[': "[]", '"': `""`, '0': "0", 't': "false", 'f': "false"}[byte(item.Kind())]...)
			if item.Kind() == 'n' {
				to = append(to, "null"...)
			}
		}
	}
	return append(to, ']')
}

func (w writer) scalar(to []byte, v jsontree.Value, one *read) []byte {
	text := v.Written()
	switch {
	case v.Kind() != '"' && v.Kind() != '0', one == nil, text == "":
	case one.keeps(text) != "":
		text = one.keeps(text)
	case one.use == asID:
		text = w.named(text)
	case one.use == asPhone:
		text = w.made.Phone(text)
	case one.use == asTime && timeForm.MatchString(text):
		text = atSomeTime(text)
	case one.use == asFigure && isFigure(text), (one.use == asWord || one.use == compare) && slices.Contains(plainWords, strings.ToLower(text)):
	case v.Kind() == '0' && !plainNumber.MatchString(text):
		text = "1"
	default:
		text = w.made.Text(text)
	}
	if v.Kind() == '"' {
		return appendText(to, noBraces.Replace(text))
	}
	return append(to, text...)
}

// noBraces writes what is no placeholder.
var noBraces = strings.NewReplacer("{", "(", "}", ")")

// keeps is the part of a text that the entry itself names, "" without one.
func (r *read) keeps(text string) string {
	var parts []string
	for _, c := range r.conditions {
		switch c.is {
		case equals, differs:
			if text == c.value {
				return text
			}
		case contains, lacks:
			if strings.Contains(text, c.value) && !slices.Contains(parts, c.value) {
				parts = append(parts, c.value)
			}
		}
	}
	return strings.Join(parts, " ")
}

var (
	plainNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	timeForm    = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}|^[0-9]{10}$|^[0-9]{13}$`)
	figureForm  = regexp.MustCompile(`(?i)^[$€£~<>+,.0-9 –-]*((k|m|b|t|thousand|million|billion|usd|eur|gbp|employees|people|to|over|under|and)[$€£~<>+,.0-9 –-]*)*$`)
)

// atSomeTime is a day in the form of another one.
func atSomeTime(text string) string {
	made := []byte(text)
	for i, c := range made {
		if c >= '0' && c <= '9' {
			made[i] = ("2024-01-15" + strings.Repeat("0", len(text)))[i]
		}
	}
	if len(text) == 10 && !strings.Contains(text, "-") || len(text) == 13 && !strings.Contains(text, "-") {
		return "1705276800000"[:len(text)]
	}
	return string(made)
}

// isFigure reports whether a text counts something: few digits, or a round number, and no words but those of
// figures. A number of a phone is none.
func isFigure(text string) bool {
	digits := strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, text)
	return figureForm.MatchString(text) && digits != "" && (len(digits) <= 6 || strings.HasSuffix(digits, "000") || strings.HasPrefix(text, "0."))
}

// plainWords are values of helpers and types that say nothing of who somebody is.
var plainWords = strings.Fields(`valid invalid unknown accept_all accept-all catch_all catch-all catchall risky deliverable undeliverable disposable
	webmail role role_based spamtrap abuse do_not_mail ok bad good verified unverified guessed true false yes no none high medium low
	personal work professional current_professional business private corporate company mobile landline voip cell cellphone phone home office
	direct direct_dial toll_free fax other primary secondary main person residential hosting isp education government`)

// appendText writes a text so that JSON and YAML read the same.
func appendText(to []byte, text string) []byte {
	to = append(to, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', byte(c))
		case c == '\n':
			to = append(to, `\n`...)
		case unicode.IsControl(c) || c == '\u2028' || c == '\u2029' || c == '\ufeff':
			to = append(to, ' ')
		default:
			to = append(to, string(c)...)
		}
	}
	return append(to, '"')
}

func quotedText(text string) string { return string(appendText(nil, text)) }

// yamlKey is a key, or the values that are one.
func (x Exchange) yamlKey(i int) string {
	of := person.Values(x.Keys[i])
	if x.Request.kind != resolution.Person || of == nil {
		return quotedText(x.Keys[i])
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, name+": "+quotedText(of[name]))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// yaml writes the exchange as a documented answer.
func (x Exchange) yaml(name string) []byte {
	var b bytes.Buffer
	add := func(name string, values ...string) {
		if slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
			values = []string{"[" + strings.Join(values, ", ") + "]"}
		}
		fmt.Fprintf(&b, "  %s: %s\n", name, values[0])
	}
	fmt.Fprintf(&b, "%s:\n", quotedText(name))
	var keys, outcomes, credits, columns []string
	for i, v := range x.Verdicts {
		keys = append(keys, x.yamlKey(i))
		outcomes = append(outcomes, named(v.Outcome))
		cost := int64(0)
		if v.Credits != nil {
			cost = *v.Credits
		}
		credits = append(credits, strconv.FormatInt(cost, 10))
		columns = append(columns, "{"+strings.Join(x.columns(v), ", ")+"}")
	}
	if fmt.Fprintf(&b, "  %s: ", x.Request.kind); len(keys) > 1 {
		fmt.Fprintf(&b, "[%s]\n", strings.Join(keys, ", "))
	} else {
		fmt.Fprintln(&b, keys[0])
	}
	add("request", quotedText(x.Message.Method+" "+x.Message.Target))
	if x.Message.Body != "" {
		add("sent", quotedText(x.Message.Body))
	}
	if x.Response.Polled {
		add("poll", "true")
	}
	add("status", strconv.Itoa(x.Response.Status))
	if len(x.Response.Header) > 0 {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(x.Response.Header)) {
			all = append(all, strings.ToLower(name)+": "+quotedText(x.Response.Header.Get(name)))
		}
		add("headers", "{"+strings.Join(all, ", ")+"}")
	}
	if len(x.Response.Body) > 0 {
		body := quotedText(string(x.Response.Body))
		reading(x.Response.Body, func(v jsontree.Value) {
			if k := v.Kind(); k == '{' || k == '[' {
				body = string(x.Response.Body)
			}
		})
		add("body", body)
	}
	add("outcome", outcomes...)
	add("credits", credits...)
	if next := x.Verdicts[0].Next; next != nil && !x.Response.Polled {
		add("next", quotedText(next.Method+" "+next.Target))
	}
	if slices.ContainsFunc(columns, func(c string) bool { return c != "{}" }) {
		add("columns", columns...)
	}
	return b.Bytes()
}

// columns are those of a match with their values.
func (x Exchange) columns(v Verdict) (all []string) {
	if v.Outcome != Match {
		return nil
	}
	filled := outputOf(x.Request.entry, x.Request.kind, v)
	for _, name := range slices.Sorted(maps.Keys(filled)) {
		var values []string
		for _, value := range filled[name] {
			values = append(values, quotedText(value))
		}
		text := values[0]
		if len(values) > 1 {
			text = "[" + strings.Join(values, ", ") + "]"
		}
		all = append(all, name+": "+text)
	}
	return all
}
