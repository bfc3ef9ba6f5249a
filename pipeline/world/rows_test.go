package world

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// undisturbed are the rows of a world without any fault, by key, by the rules of an order. asked are
// the keys that the judged service was asked about, if that is given: its verdict closes it to others.
func (o *several) undisturbed(asked map[string]bool) map[string]string {
	rows, needed, matched := map[string]string{}, 0, 0
	few := -1
	if o.judges() {
		few = o.few
	}
	for key, r := range o.ideals(func(key string, step int) bool {
		switch closed := needed >= o.judge && float64(matched) < math.Ceil(o.steps[few].MinMatch*float64(o.judge)); {
		case step != few:
			return true
		case asked == nil:
			return !closed
		case asked[key]:
			return true
		}
		open, known := o.judged[o.steps[few].Name]
		return !known || open
	}) {
		if few >= 0 && slices.Contains(r.askedOf, few) && needed < o.judge {
			if needed++; o.of[few].service.truthOf(key) == match {
				matched++
			}
		}
		rows[key] = r.text(o.want)
	}
	return rows
}

// ideals yields the rows of a world without any fault, in the order of the input. asks says whether
// a service is asked that is needed.
func (o *several) ideals(asks func(key string, step int) bool) iter.Seq2[string, *ideal] {
	return func(yield func(string, *ideal) bool) {
		seen := map[string]bool{}
		for _, key := range slices.Concat(o.batches...) {
			if seen[key] {
				continue
			}
			seen[key] = true
			r := &ideal{refuted: map[string]bool{}, checked: map[string]int64{}}
			for again := true; again; {
				r.row = row{}
				again = o.passThrough(key, r, asks)
			}
			if !yield(key, r) {
				return
			}
		}
	}
}

// passThrough lets a key go through the steps. again says that its verifier has refused a value.
func (o *several) passThrough(key string, r *ideal, asks func(key string, step int) bool) (again bool) {
	for i, s := range o.steps {
		switch {
		case s.Verifies != "":
			if r.email == "" {
				continue
			}
			service := o.of[i].service
			n := service.records[r.email].number
			if _, before := r.checked[r.email]; !before && r.isTooDear(o, i) {
				continue
			}
			r.checked[r.email] = service.costs(n)
			if own, _ := service.finds(n); service.truth(n) == match && o.listed(own) != "" {
				r.suppressed = o.listed(own)
				return false
			}
			if !service.verifies(n) {
				r.refuted[r.email] = true
				return true
			}
		case !r.needs(o.want, s.For):
		case s.Directory != nil:
			n, is := o.reference.number(key), miss
			if o.reference.has(n) {
				is = match
			}
			email, phone := o.reference.finds(n)
			r.add(o, i, is, title(n), email, phone, 0)
		case !slices.Contains(r.inOrder, i) && r.isTooDear(o, i):
		case asks(key, i):
			service := o.of[i].service
			n := service.records[key].number
			email, phone := service.finds(n)
			r.add(o, i, service.truth(n), title(n), email, phone, price)
			if r.askedOf = append(r.askedOf, i); !slices.Contains(r.inOrder, i) {
				r.inOrder = append(r.inOrder, i)
			}
		default:
			r.skipped = append(r.skipped, s.Name+":"+outcome.ReasonMinMatch)
		}
		if r.suppressed != "" {
			return false
		}
	}
	return false
}

// ideal is a row as the rules want it.
type ideal struct {
	refuted map[string]bool  // values that a verifier refuses
	checked map[string]int64 // what it costs to verify values
	inOrder []int            // services, by when they are asked first
	row
}

// isTooDear reports whether a service is left out by max_credits_per_key, and notes it.
func (r *ideal) isTooDear(o *several, step int) bool {
	if o.perKey == 0 || r.cost()+o.of[step].plan.price().Max() <= o.perKey {
		return false
	}
	r.skipped = append(r.skipped, o.steps[step].Name+":"+outcome.ReasonPerKey)
	return true
}

// cost is what the answers so far have cost.
func (r *ideal) cost() int64 {
	credits := int64(r.credits)
	for _, cost := range r.checked {
		credits += cost
	}
	return credits
}

// row is what one pass through the steps makes.
type row struct {
	by, title, email, phone    string
	emailBy, phoneBy, refusing string
	asked, refused, credits    int
	suppressed                 string
	askedOf                    []int // services
	skipped                    []string
}

// needs reports whether a resolver is asked: for anything that is wanted, and missing.
func (r *ideal) needs(want, of []string) bool {
	if want == nil {
		return r.by == ""
	}
	return slices.ContainsFunc(want, func(column string) bool {
		has := r.source(column) != ""
		return !has && (of == nil || slices.Contains(of, column))
	})
}

// source is the resolver that the value of a wanted column is from; "" without one.
func (r *ideal) source(column string) string {
	switch {
	case column == "email":
		return r.emailBy
	case column == "phone":
		return r.phoneBy
	case slices.Contains(always, column):
		return r.by
	}
	return ""
}

func (r *ideal) add(o *several, step int, is truth, title, email, phone string, cost int) {
	s := o.steps[step]
	r.asked++
	switch is {
	case refused:
		r.refused, r.refusing = r.refused+1, s.Name
		return
	case miss:
		return
	}
	r.credits += cost
	r.suppressed = o.listed(email)
	if r.by == "" {
		r.by, r.title = s.Name, title
	}
	if r.email == "" && email != "" && o.accepts(step, "email", email) && !r.refuted[email] {
		r.email, r.emailBy = email, s.Name
	}
	if r.phone == "" && phone != "" && o.accepts(step, "phone_region", "US") {
		r.phone, r.phoneBy = phone, s.Name
	}
}

// accepts reports whether a value of a step is taken.
func (o *several) accepts(step int, column, value string) bool {
	accepted, conditional := o.steps[step].Accept[column]
	return !conditional || slices.Contains(accepted, value)
}

func (r *ideal) text(want []string) string {
	credits := r.cost()
	var words []string
	switch {
	case r.suppressed != "":
		return fmt.Sprintf("suppressed %s %d", r.suppressed, credits)
	case r.by != "":
		var from []string
		for _, column := range want {
			from = append(from, r.source(column))
		}
		words = []string{"matched", "by=" + r.by, r.title, r.email, r.phone, strings.Join(from, "+")}
	case r.refused > 0 && r.refused == r.asked:
		words = []string{"failed", "refused:refused:" + r.refusing}
	default:
		words = []string{"no_match", resolution.NoMatch}
	}
	if r.skipped != nil {
		words = append(words, "skipped="+strings.Join(r.skipped, ";"))
	}
	return strings.Join(append(words, fmt.Sprint(credits)), " ")
}

// verified is the helper of which a verifier says something.
const verified = "email_status"

// verifies reports whether a verifier takes the value of a number, if it knows it.
func (s *service) verifies(number int) bool {
	return s.truth(number) == match && number%3 > 0
}

// read is client.Read. A verifier's answers have a helper.
func (s *service) read(op resolution.Operation, status int, body []byte, into *resolution.Answers) (resolution.Reply, error) {
	reply, err := client.Read(op, status, body, into)
	if s.plan.verifies && err == nil && reply.Found.Matched() {
		var number int
		if _, err := fmt.Sscanf(reply.Found.Lead().JobTitle, "title-%d-", &number); err != nil {
			panic(err)
		}
		reply.Helpers = map[string]string{verified: map[bool]string{true: "valid", false: "risky"}[s.verifies(number)]}
	}
	return reply, err
}

// listed says why a row with an email is suppressed; "" if it is not.
func (o *several) listed(email string) string {
	var number int
	if _, err := fmt.Sscanf(email, "person-%d@", &number); o.lists && err == nil && number%7 == 0 {
		return "listed"
	}
	return ""
}

// suppress is an order.Suppress.
func (o *several) suppress(row resolution.AnswerRow) string { return o.listed(row.Lead().Email) }

// reference is reference data that has every other key.
type reference struct{ *service }

func (r reference) number(key string) (number int) {
	if _, err := fmt.Sscanf(key, "network.example/in/person-%d", &number); err != nil {
		panic(err)
	}
	return number + 900
}

func (r reference) has(number int) bool { return number%2 == 0 }

// NewBatch is that of resolution.Resolver.
func (r reference) NewBatch(resolution.Operation) resolution.Batch { return r }

// Resolve is that of resolution.Batch. It answers some keys at a time.
func (r reference) Resolve(_ context.Context, of resolution.Questions, _ int, to *resolution.Answers) (n int, err error) {
	for n < min(3, of.Keys.Len()) {
		number := r.number(string(of.Keys.At(n)))
		if n++; !r.has(number) {
			to.AddMiss(resolution.NoMatch)
			continue
		}
		if _, err := client.Read(resolution.Enrichment, 200, []byte(r.lead(number, "reference")), to); err != nil {
			return 0, err
		}
	}
	return n, nil
}
