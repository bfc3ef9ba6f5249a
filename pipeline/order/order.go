// Package order asks the resolvers of a run, one after another, for what is still missing of a row, and
// makes the row of their answers. Every run asks an order, also of one.
//
// The one thing to know before using it: a row is a function of the input, the job and the stored
// answers. Order.next decides by them alone what to ask next, so outages, budgets and restarts delay
// a row and never change it.
package order

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
)

// Order is the resolvers of a job, first to last, and what is wanted of them.
type Order struct {
	// Want are the columns for whose sake the next resolver is asked; without one, any match ends
	// the order.
	Want  []string
	Steps []*Step
	// AskAll asks each resolver about each key, and each verifier about each value that was found. Rows are the
	// same as without it: the other answers are stored, to compare orders by.
	AskAll bool
	// Budget is that of all resolvers together.
	Budget purchase.Budget
	// PerKey leaves out a resolver whose highest price, added to what the answers before it have cost, is more;
	// 0 leaves out none. What is stored is left out too, so a row does not depend on who has bought an answer.
	PerKey int64
	// From are the values of a person that rows may have; a row that has them all needs no identifier.
	From []string
	// Counters counts the keys of several resolvers, and those of a Remote its questions. Never nil.
	Counters *stats.CallCounters

	wanted [resolution.Groups]bits // those of Want in each group
	all    bits
	// decisive are the groups whose values decide who is asked next, one bit each.
	decisive uint
	byValue  bool // a resolver is asked about values that others have found
}

// Step is a resolver of an order.
type Step struct {
	Name string
	// Remote is a service or a provider; nil for reference data.
	Remote *purchase.Remote
	// Directory is reference data, which is free, and Fingerprint identifies its edition.
	Directory   resolution.Resolver
	Fingerprint string
	// OtherPhoneRules says that reference data have no details of phones by the rules of this program.
	OtherPhoneRules bool
	// Entry identifies the entry of a provider; "" for others.
	Entry string
	// Fills are the columns that it may have; nil may be all.
	Fills []string
	// Question is the key that a key, or a value to verify, is asked about under: some may share one. It
	// is false if there is no request for it. nil asks about each as it is.
	Question func(key string) (question string, askable bool)
	// For are those of Order.Want for whose sake it is asked; nil is all that it fills.
	For []string
	// Accept are the values of columns, and of its own helpers, that are taken. A condition on a
	// column guards that column, one on email_* and phone_* guards email and phone.
	Accept map[string][]string
	// Helpers are those that its answers may have; nil may be any.
	Helpers []string
	// MinMatch is the share of matches among its first keys below which the others are not asked;
	// 0 asks all.
	MinMatch float64
	// ElseNext asks the next resolver at once where this one cannot be asked or its call is
	// unknown. The row says so.
	ElseNext bool
	// Verifies is the column of which it says something, of a value that a resolver before it has
	// found: email or phone; "" for one that finds values itself.
	Verifies string

	// Person are the values of a person that it is asked by, or person.Email; none for one that is asked about keys.
	Person []string

	fors       bits
	conditions []condition
}

// bits are columns of Order.Want, by their places.
type bits uint64

// condition is what a value must be for a group of columns to be taken.
type condition struct {
	column  *values.Value // nil for a helper
	helper  string
	accepts []string
	guards  resolution.Group
}

const (
	maxWanted = 64 // the number of bits
	// maxSteps is the number of resolvers of which a part remembers what it has written.
	maxSteps = 32
)

// Check joins all problems of an order, and prepares it. It may be called again.
func (o *Order) Check(op resolution.Operation) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if op.IsKeyword() {
		return o.checkSearches(op)
	}
	if len(o.Want) > maxWanted {
		fail("want names %d columns; %d are possible", len(o.Want), maxWanted)
	}
	o.all, o.wanted, o.decisive, o.byValue = 0, [resolution.Groups]bits{}, 0, false
	for i, column := range o.Want {
		v, known := values.Wanted[column]
		switch {
		case !known, !columns.CanWant(columns.Settings{Operation: op, Remote: true, HEMTypes: columns.HEMTypes}, column):
			fail("want names %q, which is no column that a resolver of %s finds%s", column, op, suggest.OneOf(column, wantable(op)))
			continue
		case op.Identifier() == resolution.Email && v.Group == resolution.GroupHashes:
			fail("want names %q, which follows from the email and needs no resolver", column)
		case slices.Index(o.Want, column) < i:
			fail("want names %q twice", column)
		}
		if i < maxWanted {
			o.wanted[v.Group] |= 1 << i
			o.all |= 1 << i
			o.decisive |= 1 << v.Group
		}
	}
	if len(o.Steps) > maxSteps {
		fail("resolvers names %d; %d are possible", len(o.Steps), maxSteps)
	}
	names := map[string]bool{}
	found := append([]string{}, o.From...)
	errs = append(errs, o.checkFrom(op)...)
	for _, s := range o.Steps {
		if missing := s.missing(found); missing != "" {
			fail("resolver %s is asked by %s, which no resolver before it finds", s.Name, missing)
		}
		if found != nil && s.Verifies == "" {
			if found = append(found, s.Fills...); s.Fills == nil {
				found = nil
			}
		}
		if names[s.Name] {
			fail("resolvers names %s twice", s.Name)
		}
		names[s.Name] = true
		errs = append(errs, s.check(o, op)...)
		if v, verifies := values.Wanted[s.Verifies]; verifies {
			o.decisive |= 1 << v.Group
			o.byValue = true
		}
		for _, name := range s.Person {
			o.decisive |= 1 << values.Wanted[name].Group
			o.byValue = true
		}
	}
	return errors.Join(errs...)
}

// checkSearches checks an order that is asked for pages of searches.
func (o *Order) checkSearches(op resolution.Operation) error {
	switch {
	case !o.IsOne():
		return fmt.Errorf("%s asks one service; several resolvers are for operations on single records, because the pages of two searches cannot be merged", op)
	case o.Steps[0].Entry != "":
		return fmt.Errorf("%s asks one service; provider %s has no searches", op, o.Steps[0].Name)
	case len(o.Want) > 0 || len(o.From) > 0 || o.NotesSkipped() || o.Steps[0].For != nil || o.Steps[0].Accept != nil:
		return fmt.Errorf("%s takes all that its searches find; want, from, for, accept, min_match, else and max_credits_per_key are for operations on single records", op)
	}
	return nil
}

// wantable are the columns of an operation that can be wanted.
func wantable(op resolution.Operation) (names []string) {
	for name := range values.Wanted {
		if columns.CanWant(columns.Settings{Operation: op, Remote: true, HEMTypes: columns.HEMTypes}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *Step) check(o *Order, op resolution.Operation) (errs []error) {
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("resolver %s: %s", s.Name, fmt.Sprintf(format, args...)))
	}
	if len(o.Want) == 0 && (s.For != nil || s.Accept != nil) {
		fail("for and accept need want: the columns that the job is about")
	}
	if s.Verifies != "" && s.MinMatch > 0 {
		fail("it verifies %s: min_match is for resolvers that find values", s.Verifies)
	}
	if s.IsPaid() && o.PerKey > 0 && s.Remote.Price.Max() > o.PerKey {
		fail("one answer costs up to %d credits, more than max_credits_per_key %d: it would never be asked", s.Remote.Price.Max(), o.PerKey)
	}
	if s.MinMatch < 0 || s.MinMatch > 1 {
		fail("min_match is %g; it is a share such as 10%%", s.MinMatch)
	}
	s.fors, s.conditions = 0, nil
	for i, column := range o.Want {
		if i < maxWanted && (s.For == nil || slices.Contains(s.For, column)) && (s.Fills == nil || slices.Contains(s.Fills, column)) {
			s.fors |= 1 << i
		}
	}
	for _, column := range s.For {
		switch {
		case !slices.Contains(o.Want, column):
			fail("for names %q, which is not among want%s", column, suggest.Name(column, o.Want))
		case s.Fills != nil && !slices.Contains(s.Fills, column):
			fail("for names %q, which its entry does not fill; it fills %s", column, strings.Join(s.Fills, ", "))
		}
	}
	if s.Verifies != "" && len(s.Accept) == 0 {
		fail("it verifies %s; say with accept which results are taken", s.Verifies)
	}
	for _, column := range slices.Sorted(maps.Keys(s.Accept)) {
		c, err := s.newCondition(column, s.Accept[column])
		if err != nil {
			fail("%v", err)
		}
		s.conditions = append(s.conditions, c)
	}
	return errs
}

// newCondition reads a member of accept.
func (s *Step) newCondition(column string, accepts []string) (c condition, err error) {
	c = condition{helper: column, accepts: accepts}
	v, known := values.Wanted[column]
	guarded, isColumn := column, known
	for _, of := range []string{"email", "phone"} {
		if strings.HasPrefix(column, of+"_") {
			guarded = of
		}
	}
	if s.Verifies != "" {
		guarded, isColumn = s.Verifies, false
	}
	if isColumn {
		c.column, c.helper = v, ""
	}
	g, is := values.Wanted[guarded]
	switch {
	case len(accepts) == 0:
		return c, fmt.Errorf("accept of %s has no value", column)
	case !is || known && v.IsList():
		return c, fmt.Errorf("accept names %q; it takes columns with one value, and helpers that begin with email_ or phone_", column)
	case !isColumn && s.Helpers != nil && !slices.Contains(s.Helpers, column):
		return c, fmt.Errorf("accept names %q, which is no helper of it: every value would be refused%s", column, suggest.Name(column, s.Helpers))
	}
	c.guards = g.Group
	return c, nil
}

// missing is the first value of a person that a step is asked by and that is not found, "" without one; nil is all.
func (s *Step) missing(found []string) string {
	for _, name := range s.Person {
		if found != nil && !slices.Contains(found, name) {
			return name
		}
	}
	return ""
}

// checkFrom checks From.
func (o *Order) checkFrom(op resolution.Operation) (errs []error) {
	if len(o.From) > 0 && op.Identifier() != resolution.NetworkURL {
		return []error{fmt.Errorf("from is for operations on profiles; the operation is %s", op)}
	}
	for _, name := range o.From {
		if !slices.ContainsFunc(o.Steps, func(s *Step) bool { return slices.Contains(s.Person, name) }) {
			errs = append(errs, fmt.Errorf("from names %s, which no resolver is asked by", name))
		}
	}
	return errs
}

// Hasher returns what hashes the question about a key as it is stored.
func (s *Step) Hasher(op resolution.Operation) func(key string) answers.Hash {
	scope := s.Remote.Scope(op)
	return func(key string) answers.Hash {
		return answers.Question{Scope: scope, Key: s.question(key)}.Hash()
	}
}

func (s *Step) question(key string) string {
	if s.Question != nil {
		key, _ = s.Question(key)
	}
	return key
}

// AtRest returns an order that gives stored answers alone, and counts apart.
func (o *Order) AtRest() *Order {
	rest := *o
	rest.Steps, rest.Counters = nil, &stats.CallCounters{}
	for _, s := range o.Steps {
		step := *s
		if s.IsPaid() {
			step.Remote = s.Remote.AtRest()
		}
		rest.Steps = append(rest.Steps, &step)
	}
	return &rest
}

// NotesSkipped reports whether resolvers of the order may be passed over, which rows then say.
func (o *Order) NotesSkipped() bool {
	return o.PerKey > 0 || slices.ContainsFunc(o.Steps, func(s *Step) bool { return s.ElseNext || s.MinMatch > 0 })
}

// Judges reports whether a resolver with a MinMatch has no verdict yet.
func (o *Order) Judges(judged map[string]bool) bool {
	return slices.ContainsFunc(o.Steps, func(s *Step) bool {
		_, known := judged[s.Name]
		return s.MinMatch > 0 && !known
	})
}

// Paid are the resolvers that cost something.
func (o *Order) Paid() (paid []*Step) {
	for _, s := range o.Steps {
		if s.IsPaid() {
			paid = append(paid, s)
		}
	}
	return paid
}

// IsPaid reports whether the answers of a step cost something: it has a Remote, and no Directory.
func (s *Step) IsPaid() bool { return s.Remote != nil }

// CheckAskAll refuses AskAll where it has no use, or no end.
func (o *Order) CheckAskAll() error {
	switch {
	case !o.AskAll:
		return nil
	case len(o.finders()) < 2:
		return errors.New("--ask-all asks all of several resolvers that cost something; name them under resolvers in the job file")
	case !o.isBounded():
		return errors.New("--ask-all pays every resolver for every key: set a budget, --max-credits or --max-calls, or one of each resolver")
	}
	return nil
}

// finders are the resolvers that cost something, and find values themselves.
func (o *Order) finders() []*Step {
	return slices.DeleteFunc(o.Paid(), func(s *Step) bool { return s.Verifies != "" })
}

// isBounded reports whether a budget bounds what the run costs.
func (o *Order) isBounded() bool {
	has := func(b purchase.Budget) bool { return b.MaxCredits >= 0 || b.MaxCalls >= 0 || b.Allowance.Days > 0 }
	return has(o.Budget) || !slices.ContainsFunc(o.Paid(), func(s *Step) bool { return !has(s.Remote.Budget) })
}
