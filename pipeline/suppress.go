package pipeline

import (
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// suppressor leaves people out who must not be in the dataset. A nil one
// leaves nobody out.
type suppressor struct {
	finder *suppression.Finder
	kind   suppression.Kind // of the identifiers
	others []identifierColumn
}

// identifierColumn is a kept column that holds identifiers beside the one that
// is resolved.
type identifierColumn struct {
	place int
	kind  suppression.Kind
}

// newSuppressor makes one for a part; nil without lists.
func (d *decision) newSuppressor() *suppressor {
	lists := d.run.Suppression
	if lists == nil {
		return nil
	}
	p := &suppressor{finder: lists.Finder(), kind: suppression.Kind(d.run.Job.Operation.Identifier())}
	if d.run.TellFound != nil {
		p.finder = lists.RememberingFinder()
	}
	if d.run.Job.Operation.IsKeyword() {
		return p // a row is a search, and of nobody
	}
	for i, name := range d.columns.read[:d.columns.kept] {
		if kind, known := identifierColumns[strings.ToLower(name)]; known && i != d.columns.identifier {
			p.others = append(p.others, identifierColumn{i, kind})
		}
	}
	return p
}

// identifierColumns are the names, in lower case, by which input columns are
// known to hold identifiers.
var identifierColumns = map[string]suppression.Kind{
	"email": suppression.Email, "phone": suppression.Phone, "network_url": suppression.NetworkURL, "ip": suppression.IP,
	"hem": suppression.Email, "hem_md5": suppression.Email, "hem_sha1": suppression.Email, "hem_sha256": suppression.Email,
}

// rows suppresses the rows of a batch by what they hold themselves.
func (p *suppressor) rows(b *columns.Batch) {
	if p == nil {
		return
	}
	var listed []bool
	if p.kind == suppression.Email {
		listed = p.finder.Emails(b.Emails, b.Keys.Data, b.Keys.Offsets)
	}
	for i, o := range b.Outcomes {
		switch {
		case o == outcome.Rejected:
			continue
		case p.kind == suppression.Email && !listed[i],
			p.kind == suppression.NetworkURL && !p.finder.ProfileKey(b.Keys.At(i)),
			p.kind == suppression.IP && !p.finder.Address(b.Addrs[i]):
			continue
		}
		b.Suppress(i, outcome.PrefixListed+string(p.kind))
	}
	for _, other := range p.others {
		cells := b.Kept[other.place]
		for i := range b.Len() {
			listed := !cells.IsNull(i) && cells.Value(i) != "" && p.finder.Lists(other.kind, cells.Value(i))
			if listed && b.Outcomes[i] != outcome.Suppressed { // the first is the reason
				b.Suppress(i, outcome.PrefixListed+string(other.kind))
			}
		}
	}
}

// answers suppresses the rows of a batch by what was found about them.
func (p *suppressor) answers(b *columns.Batch) {
	if p == nil {
		return
	}
	for i, lead := range b.Leads {
		if lead == nil || b.Outcomes[i] != outcome.Matched {
			continue
		}
		if by, listed := p.lead(lead); listed {
			b.Suppress(i, outcome.PrefixListedInAnswer+string(by))
		}
	}
}

// lead says by what somebody is listed whom a lead is about. It looks at
// everything, so that all of it is remembered.
func (p *suppressor) lead(l *resolution.Lead) (by resolution.Identifier, listed bool) {
	for kind, value := range l.Identifiers() {
		if p.finder.Lists(suppression.Kind(kind), value) && !listed {
			by, listed = kind, true
		}
	}
	return by, listed
}

// fingerprint is that of the lists, for the dataset's identity.
func (r *Run) fingerprint() string {
	if r.Suppression == nil {
		return ""
	}
	return r.Suppression.Fingerprint()
}

// published keeps what a part has found on the lists, before the part counts.
func (p *suppressor) published(j *journal, number int) error {
	if p == nil || p.finder.Found() == nil {
		return nil
	}
	if err := j.keepFound(number, p.finder.Found()); err != nil {
		return fmt.Errorf("keep what is suppressed: %w", err)
	}
	return nil
}

// tellFound tells what all parts have found, before the dataset is published.
func (w *work) tellFound() error {
	d := w.decision
	if d.run.TellFound == nil {
		return nil
	}
	all := suppression.Found{}
	for number := range w.log.parts {
		found, err := d.journal.found(number)
		if err != nil {
			return err
		}
		all.Add(found)
	}
	return d.run.TellFound(all)
}

// checkFound reports whether it is known of every recorded part what it has
// found on the lists.
func (d *decision) checkFound() error {
	if d.run.TellFound == nil {
		return nil
	}
	for number := range d.recorded {
		if _, err := d.journal.found(number); err != nil {
			return &JobError{fmt.Errorf("%s: what its recorded parts suppressed is not known any more: %w; make the dataset again with --overwrite", d.run.Output.Dir(), err)}
		}
	}
	return nil
}
