package runs

import (
	"fmt"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// kind is what a world does.
type kind string

const (
	hashed   kind = "hashed"   // what is written follows from the rows
	lookedUp kind = "lookedUp" // it is in reference data
	bought   kind = "bought"   // of one service
	ordered  kind = "ordered"  // of two services and reference data
	windows  kind = "windows"  // survey, parts and finish
	compared kind = "compared" // the changes between two datasets
)

// scenes are what worlds are about.
var scenes = []scene{
	{hashed, false}, {hashed, true}, {lookedUp, false}, {bought, false}, {bought, true}, {ordered, false}, {ordered, true}, {windows, true}, {compared, false},
}

// scene is a kind of run, and where its state is.
type scene struct {
	kind kind
	onS3 bool
}

func (s scene) String() string {
	if s.onS3 && s.kind != windows {
		return string(s.kind) + "OnS3"
	}
	return string(s.kind)
}

// plan is what a seed decides of a world before its first life.
type plan struct {
	scene
	operation resolution.Operation
	outOnS3   bool
	nights    int
	dated     bool // each night has a folder of its own; else it replaces the one before
	changes   bool // a night is compared with the one before
	rows      int  // of a night
	files     int  // of a night
	perPart   int
	batch     int // rows that are read together
	workers   int
	parted    bool // by a column
	selects   bool // rows by the value of a column
	malformed bool // some lines
	persons   bool // rows have names and companies, some nothing else, and one service is asked by them
	listed    bool // some people must not be in the dataset
	grows     bool // the list of them, after the first life of a night
	sumLater  bool // checksums of parts in a folder are taken after they are recorded
	budgeted  bool // there are budgets, which are never used up
	crashes   int  // lives of a night that crash, unless they end before
	damaged   bool // a file, before a night is done to its end or after

	honours bool    // services know idempotency keys
	faulty  float64 // the share of requests that they fail
	want    []string
	fewest  float64 // the share of matches below which a service is not asked

	bucketFails, bucketSlow, bucketStale float64
	diskFails                            float64
	// prompt says that a request of a machine that dies arrives at once or never.
	prompt bool
}

func newPlan(w *worldtest.World, l worldtest.Limits, of scene) plan {
	in := func(what string, from, to int) int { return from + w.Below(to-from+1, "plan", what) }
	often := func(what string, one int) bool { return w.Below(one, "plan", what) == 0 }
	p := plan{
		scene: of, operation: resolution.Enrichment, nights: in("nights", 1, 2), dated: !often("replaced", 3), changes: often("changes", 2),
		rows: max(min(in("rows", 1, 24), 2*l.Keys), 1), files: in("files", 1, 3), perPart: in("per part", 2, 9), batch: in("batch", 1, 6), workers: in("workers", 1, 3),
		parted: often("parted", 3), malformed: often("malformed", 2), listed: often("listed", 2), crashes: min(in("crashes", 1, 4), l.Crashes),
		honours: often("honours", 2), prompt: often("prompt", 2), outOnS3: of.onS3 || often("out on S3", 4),
	}
	if often("faulty", 2) {
		p.faulty = float64(in("faults", 1, 3)) / 10
	}
	if often("bad store", 3) {
		p.bucketFails, p.bucketSlow = float64(in("store fails", 1, 10))/100, float64(in("store is slow", 0, 5))/100
	}
	if often("bad disk", 4) {
		p.diskFails = float64(in("disk fails", 1, 4)) / 100
	}
	p.selects, p.sumLater, p.budgeted = often("selects", 4), often("sum later", 2), often("budgeted", 2)
	p.damaged, p.grows = often("damaged", 2), often("grows", 2)
	p.persons = often("persons", 2)
	if often("want", 2) {
		p.want = []string{"email", "phone"}
	}
	if often("fewest", 2) {
		p.fewest = 0.5
	}
	return p.of()
}

// of settles what follows from the kind.
func (p plan) of() plan {
	switch p.kind {
	case hashed, windows:
		p.operation = resolution.EmailToHEM
	case compared:
		p.operation, p.nights, p.dated = resolution.EmailToHEM, 2, true
	}
	p.persons = p.persons && p.kind == ordered
	if p.kind == compared { // a list says who is in no comparison
		p.listed = false
	}
	if p.nights == 1 || !p.dated {
		p.changes = false
	}
	p.grows = p.grows && p.listed && p.crashes > 0 && p.kind != windows
	return p
}

// night is one dataset of a world.
type night struct {
	number int
	out    string
	in     string // begins the names of its lists
	day    string // "" if it has no folder of its own
	// overwrite says that the dataset takes the place of an earlier one.
	overwrite bool
	// compares says that the two nights before are compared.
	compares bool
	// anew says that damage made the user overwrite the dataset, or that more was asked before a list grew.
	anew bool
}

// replaces reports whether the dataset takes the place of an earlier one.
func (n night) replaces() bool { return n.number > 0 && n.day == "" && !n.compares }

// datasets is how many datasets are made.
func (p plan) datasets() int {
	if p.kind == compared {
		return p.nights + 1
	}
	return p.nights
}

// buys reports whether answers cost something.
func (p plan) buys() bool { return p.kind == bought || p.kind == ordered }

// budget is what a run may spend.
func (p plan) budget() purchase.Budget {
	if !p.budgeted {
		return purchase.Budget{MaxCredits: -1, MaxCalls: -1}
	}
	return purchase.Budget{MaxCredits: 1e6, MaxCalls: 1e6, MaxDuration: longest, Allowance: cliflag.Allowance{Days: 1000, Credits: 1e6}}
}

const bucketName = "leads"

// night is that of a number.
func (p plan) night(number int) night {
	out, in := "/", "/"
	if p.outOnS3 {
		out, in = "s3://"+bucketName+"/", "s3://"+bucketName+"/"
	}
	n := night{number: number, out: out + "out", in: fmt.Sprintf("%sin/%d/", in, number), anew: p.grows && p.buys()}
	switch {
	case number == p.nights:
		n.compares, n.out = true, out+"changes"
	case p.dated:
		n.day = fmt.Sprintf("2026-11-%02d", 20+number)
		n.out += "/dt=" + n.day
	}
	if p.outOnS3 {
		n.out += "/"
	}
	n.overwrite = n.replaces()
	return n
}

// job is that of a night.
func (p plan) job(n night) job.Job {
	j := job.Default(p.operation)
	j.RowsPerPart = p.perPart
	if p.kind == bought || p.kind == ordered { // resolved_at says when an answer came
		j.Select = []string{"input", "key", "email", "phone", "job_title", "outcome", "reason"}
	}
	if p.persons {
		j.From = map[string]string{"full_name": "who", "company_domain": "site"}
	}
	if p.listed {
		j.SuppressedID = "id"
	}
	if p.parted {
		j.PartitionBy = "land"
	}
	if p.selects {
		j.Where = []job.Condition{{Column: "land", Value: "L1"}}
	}
	if n.day != "" {
		j.Partitions = []sinks.Partition{{Name: "dt", Value: n.day}}
	}
	return j
}

// lists are the lists of all nights, by their names.
func (p plan) lists(w *worldtest.World) map[string]string {
	all := map[string]string{}
	for number := range p.nights {
		for file := range p.files {
			var b strings.Builder
			fmt.Fprintf(&b, "id,land,%s", p.operation.Identifier())
			if p.persons {
				b.WriteString(",who,site")
			}
			b.WriteString("\n")
			for row := file; row < p.rows; row += p.files {
				p.line(&b, w, number, row)
			}
			all[fmt.Sprintf("in/%d/list-%d.csv", number, file)] = b.String()
		}
	}
	return all
}

// line writes a row. A later night lacks some and has others.
func (p plan) line(b *strings.Builder, w *worldtest.World, number, row int) {
	person := row
	switch w.Below(8, "row", number, row) {
	case 0:
		person = w.Below(p.rows, "person", number, row) // that another row may have, too
	case 1:
		person = 100*(1+number) + row
	}
	what := w.Below(12, "line", number, row)
	if p.malformed && what == 0 {
		b.WriteString("malformed\n")
		return
	}
	identifier := address(p.operation, person)
	if what == 1 {
		identifier = "invalid"
	}
	if p.persons && w.Below(2, "nameless", number, row) == 0 {
		identifier = ""
	}
	fmt.Fprintf(b, "%d,L%d,%s", row, w.Below(3, "land", row), identifier)
	if p.persons { // in several spellings
		site := []string{"site%d.example", "https://www.SITE%d.example/", ""}[w.Below(12, "site", number, row)%5%3]
		if site != "" {
			site = fmt.Sprintf(site, person)
		}
		fmt.Fprintf(b, ",%s,%s", fmt.Sprintf([]string{"Person %d", " PERSON  %d "}[w.Below(2, "who", number, row)], person), site)
	}
	b.WriteString("\n")
}

// suppressed are the people who must not be in a dataset; nil without a list. A list that grows lacks some first.
func (p plan) suppressed(first bool) (*suppression.Set, error) {
	if !p.listed {
		return nil, nil
	}
	b := suppression.NewBuilder(suppression.Rules{Region: "US"})
	people := []int{1, 3, 4, 11, 1000}
	if p.grows && first {
		people = people[:2]
	}
	for _, person := range people {
		if err := b.Add(address(p.operation, person)); err != nil {
			return nil, err
		}
		if p.persons { // in an answer alone
			if err := b.Add(fmt.Sprintf("person%d@%s.example", person+1, finder)); err != nil {
				return nil, err
			}
		}
	}
	return b.Set(), nil
}

// address is the identifier of a person.
func address(op resolution.Operation, person int) string {
	if op == resolution.EmailToHEM {
		return fmt.Sprintf("person%d@mail.example", person)
	}
	return fmt.Sprintf("https://network.example/in/person%d", person)
}

// longest is more than any life takes.
const longest = 30 * 24 * time.Hour
