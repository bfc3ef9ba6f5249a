package providercmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/provider"
)

// tryView shows what a provider is asked and answers. The client calls exchange while the buyer is at work.
type tryView struct {
	out   io.Writer
	entry *provider.Entry
	saved *saved // nil without --save
	hosts []string

	mu     sync.Mutex
	asks   []string        // what is being asked about
	shown  map[string]bool // keys whose answer is shown
	tally  map[outcome.Outcome]int
	cost   int64
	failed error // of a write
}

func (v *tryView) line(format string, args ...any) {
	if _, err := fmt.Fprintln(v.out, invisible.Escape(fmt.Sprintf(format, args...))); err != nil && v.failed == nil {
		v.failed = err
	}
}

// begin says who is asked about what.
func (v *tryView) begin(kind resolution.Identifier, all []string) {
	v.shown, v.tally = map[string]bool{}, map[outcome.Outcome]int{}
	v.line("%s, %s: %s of kind %s, %s at most", v.entry.Name, v.entry.Base(), figures.Plural(len(all), "key"), kind, figures.Plural(int64(len(all))*v.entry.Price.Max(), "credit"))
}

// balance says what is left, or why that is not known.
func (v *tryView) balance(left int64, counts string, err error) {
	if err != nil {
		v.line("balance not known: %s", err)
		return
	}
	v.line("balance: %s %s", figures.Grouped(left), cmp.Or(counts, "credits"))
}

func (v *tryView) notAskable(key string) {
	v.notAsked(key, "the provider is asked for a form that the key lacks, such as the address of a hash; the row of a run is no_match, not_askable")
}

func (v *tryView) notAsked(key, why string) {
	v.line("")
	v.line("%s", key)
	v.line("  not asked   %s", why)
}

// exchange shows a request and its answer.
func (v *tryView) exchange(x provider.Exchange) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.ContainsFunc(x.Keys, func(key string) bool { return key != "" }) && len(v.asks) == 1 {
		x.Keys = v.asks // a poll does not know it
	}
	if x.Response.Polled && !slices.ContainsFunc(x.Verdicts, func(d provider.Verdict) bool { return d.Outcome != provider.Later }) {
		v.line("  not there   %d, asked again later", x.Response.Status)
		return
	}
	v.show(x, "")
}

// show shows an exchange. note says of a stored answer where it is from.
func (v *tryView) show(x provider.Exchange, note string) {
	v.line("")
	v.line("%s", strings.Join(x.Keys, ", "))
	v.line("  request     %s %s%s", x.Message.Method, x.Message.Target, v.entry.KeyAt())
	if x.Message.Body != "" {
		v.line("              %s", x.Message.Body)
	}
	if x.Failure != nil {
		v.line("  no answer   %s", reasonOf(x.Failure))
		return
	}
	if note == "" {
		note = "in " + x.Took.Round(time.Millisecond).String()
	}
	v.line("  answer      %d, %s", x.Response.Status, note)
	for _, header := range x.Limits() {
		v.line("  limit       %s", header)
	}
	for i, verdict := range x.Verdicts {
		if len(x.Verdicts) > 1 {
			v.line("  %s", x.Keys[i])
		}
		v.verdict(x, verdict)
		v.shown[x.Keys[i]] = true
	}
	if unread := x.Unread(); len(unread) > 0 {
		v.line("  not read    %s", strings.Join(unread, ", "))
	}
	if v.saved != nil {
		v.line("  saved       %s", v.saved.add(x, v.hosts))
	}
}

func reasonOf(err error) string {
	if failed, is := errors.AsType[*resolution.CallError](err); is {
		return failed.Reason()
	}
	return err.Error()
}

// verdict shows what an answer is for one key.
func (v *tryView) verdict(x provider.Exchange, verdict provider.Verdict) {
	if rule := x.Rule(verdict); rule != "" {
		v.line("  rule        %s", rule)
	}
	switch {
	case verdict.Fault != "":
		v.line("  unknown     %s", verdict.Fault)
	case verdict.Rule == 0:
		for i, why := range x.Misfits(verdict) {
			v.line("  %s     %s", [...]string{"unknown", "       "}[min(i, 1)], why)
		}
	}
	if verdict.Outcome == provider.Match {
		table := tabwriter.NewWriter(v.out, 0, 0, 2, ' ', 0)
		for _, f := range x.Filled(verdict) {
			said := strings.Join(f.Values, "; ")
			if f.Lack != "" && said == "" {
				said = "– " + f.Lack
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\n", f.Column, f.Path, invisible.Escape(said))
		}
		if err := table.Flush(); err != nil && v.failed == nil {
			v.failed = err
		}
	}
	if verdict.Credits != nil {
		v.line("  credits     %s", x.Price(verdict))
	}
}

// result shows what a run would have of a key whose answer is not shown yet.
func (v *tryView) result(r *provider.Request, key string, before answers.Found, a purchase.Result) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tally[a.Outcome]++
	if before.Stored && before.Fresh && !v.shown[key] {
		was := provider.NoMatch
		if before.Answer.Outcome == answers.Matched {
			was = provider.Match
		}
		v.show(r.Stored(key, before.Answer.Status, before.Answer.Body, was, before.Answer.Credits), "stored on "+before.Answer.Received.Local().Format(time.DateTime)+", not asked again")
		return
	}
	if a.Receipt.Priced {
		v.cost += int64(a.Receipt.Credits)
	}
	switch {
	case a.Outcome == outcome.Failed && a.Open && !v.shown[key]:
		v.notAsked(key, "an earlier call about it is unknown: it may have been billed; leadetl answers list --unknown shows it")
	case a.Outcome == outcome.Failed || a.Outcome == outcome.Skipped:
		v.line("  row         %s, %s", a.Outcome, a.Reason)
	}
}

// close sums up.
func (v *tryView) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []string
	for _, o := range []outcome.Outcome{outcome.Matched, outcome.NoMatch, outcome.Failed, outcome.Skipped} {
		if n := v.tally[o]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, o))
		}
	}
	if len(all) > 0 {
		v.line("")
		v.line("%s; paid now: %s; runs with the same --state do not pay for these answers again", strings.Join(all, ", "), figures.Plural(v.cost, "credit"))
	}
	if v.saved != nil && v.saved.n > 0 {
		v.line("look at %s, then check it: leadetl provider check %s", v.saved.file, v.saved.entry)
	}
	return v.failed
}

// saved is the file of documented answers that exchanges are added to.
type saved struct {
	file, entry string
	text        string
	names       map[string]bool
	n           int
}

// newSaved reads what the folder has. It puts the file of the entry there if there is none.
func newSaved(folder string, e *provider.Entry, from string) (*saved, error) {
	s := &saved{file: filepath.Join(folder, e.Name+".answers.yaml"), entry: filepath.Join(folder, e.Name+".yaml"), names: map[string]bool{}}
	content, _ := provider.ShippedFile(e.Name)
	if from != "" {
		s.entry = filepath.Join(folder, filepath.Base(from))
		var err error
		if content, err = os.ReadFile(from); err != nil {
			return nil, fmt.Errorf("--save: %w", err)
		}
	}
	switch before, err := os.ReadFile(s.entry); {
	case os.IsNotExist(err):
		if err := atomicfile.Write(s.entry, content); err != nil {
			return nil, fmt.Errorf("--save: %w", err)
		}
	case err == nil && !bytes.Equal(before, content):
		return nil, fmt.Errorf("--save: %s, by which the answers are checked, is not as %s: remove it, or save beside that", s.entry, cmp.Or(from, "leadetl provider show "+e.Name))
	}
	text, err := os.ReadFile(s.file)
	if os.IsNotExist(err) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--save: %w", err)
	}
	known, err := provider.ParseDocumented(s.file, text)
	if err != nil {
		return nil, fmt.Errorf("--save: %w", err)
	}
	for _, d := range known {
		s.names[d.Name] = true
	}
	s.text = strings.TrimRight(string(text), "\n") + "\n"
	return s, nil
}

// add adds an exchange, and says what came of it.
func (s *saved) add(x provider.Exchange, hosts []string) string {
	name := ""
	for n := 1; name == "" || s.names[name]; n++ {
		name = fmt.Sprintf("tried on %s: %s, %d", time.Now().Format(time.DateOnly), x.Outcomes(), n)
	}
	text, differences, err := x.Anonymous(name, hosts)
	if err == nil {
		_, err = provider.ParseDocumented(s.file, []byte(s.text+string(text)))
	}
	if err == nil {
		err = atomicfile.Write(s.file, []byte(s.text+string(text)))
	}
	if err != nil {
		return "not: " + err.Error()
	}
	s.text, s.names[name], s.n = s.text+string(text), true, s.n+1
	if len(differences) > 0 {
		return "as \"" + name + "\", of which leadetl provider check says: " + strings.Join(differences, "; ")
	}
	return "as \"" + name + "\""
}
