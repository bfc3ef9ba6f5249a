package runs

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store/bucket"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/steps"
	"github.com/leadetl/leadetl/sinks"
)

// harm is damage to a file that was synced, between two lives.
type harm struct {
	file        string // on the disk, or in the bucket
	inBucket    bool
	did         string
	before, now content
	back        func() // brings the file back
}

// content is that of a file; there is false without one.
type content struct {
	text  string
	there bool
}

// on are the files of the disk, or of the bucket.
func (s *site) on(inBucket bool) worldtest.Files {
	if inBucket {
		return worldtest.Objects{World: s.world, Store: s.objects}
	}
	return s.disk
}

func (s *site) contentOf(file string, inBucket bool) content {
	text, there := s.on(inBucket).Files()[file]
	return content{text, there}
}

// isThere reports whether nobody has written the file since.
func (d *harm) isThere(s *site) bool { return s.contentOf(d.file, d.inBucket) == d.now }

// ofState reports whether the file is the state's, and not a dataset's.
func (d *harm) ofState() bool {
	return strings.HasPrefix(strings.TrimPrefix(d.file, bucketName+"/"), "state/")
}

func (d *harm) isIn(folder string) bool { return strings.Contains(d.file, "state/"+folder) }

// canBeHarmed reports whether a file of the disk or the bucket is what a run has left: no list, no lock, and
// no stored answer on S3.
func canBeHarmed(name string) bool {
	for _, other := range []string{"/in/", "/state/answers/", "/state/lease/", "/_lock"} {
		if strings.Contains("/"+name, other) {
			return false
		}
	}
	return !atomicfile.IsTemp(path.Base(name))
}

// kindOf is what a file is of a state or a dataset.
func kindOf(name string) string {
	for _, kind := range []string{"/nights/", "/journal/", "/beside/", "/parts/", "/s3/", "/runs/", "/" + format.MarkName} {
		if strings.Contains(name, kind) {
			return kind
		}
	}
	if path.Ext(name) == ".parquet" {
		return path.Ext(name)
	}
	return path.Base(name)
}

// candidate is a file that may be damaged.
type candidate struct {
	file     string
	inBucket bool
}

// candidates are the files of a kind that a seed draws.
func (s *site) candidates(draw func(most int, what string) int) []candidate {
	kinds := map[string][]candidate{}
	for _, inBucket := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(s.on(inBucket).Files())) {
			if canBeHarmed(name) {
				kinds[kindOf(name)] = append(kinds[kindOf(name)], candidate{name, inBucket})
			}
		}
	}
	if draw(8, "the mark") > 0 {
		delete(kinds, kindOf("/"+format.MarkName))
	}
	if len(kinds) == 0 {
		return nil
	}
	return kinds[slices.Sorted(maps.Keys(kinds))[draw(len(kinds), "kind of file")]]
}

// damage damages a file, as disks and stores do that lie; nil if nothing has changed.
func (s *site) damage(n night, when string) *harm {
	draw := func(most int, what string) int { return s.world.Below(most, "harm", what, when, n.number) }
	of := s.candidates(draw)
	if len(of) == 0 {
		return nil
	}
	c := of[draw(len(of), "file")]
	d := &harm{file: c.file, inBucket: c.inBucket}
	var beside []string // in its folder
	for _, other := range of {
		if other.inBucket == c.inBucket && other.file != c.file && path.Dir(other.file) == path.Dir(c.file) {
			beside = append(beside, other.file)
		}
	}
	other := ""
	if len(beside) > 0 {
		other = beside[draw(len(beside), "other")]
	}
	on := s.on(c.inBucket)
	harmed, kept, backOther := c.file, on.Files(), on.KeepFile(other)
	d.back = on.KeepFile(c.file)
	if d.did = on.Damage(c.file, other, when, n.number); strings.HasPrefix(d.did, "doubled") {
		harmed, d.back = other, backOther
	}
	d.file = harmed
	text, there := kept[harmed]
	d.before, d.now = content{text, there}, s.contentOf(harmed, c.inBucket)
	if d.did == "" || d.before == d.now {
		return nil
	}
	return d
}

// suffer damages a file before a night is done to its end. A run of the night says so, and can be repaired, or
// it goes on: finish then compares what it publishes. It returns the night as it is to be finished.
func (h *history) suffer(ctx context.Context, n night, when string) night {
	s := h.disturbed
	d := s.damage(n, when)
	if d == nil {
		return n
	}
	s.local.Begin(ctx, 0)
	s.local.Note("%s is damaged: %s", d.file, d.did)
	s.local.Crash()
	s.disk.Restart(false)
	if d.isIn("nights/") && !d.now.there && h.plan.changes || h.isUnseen(d, n) {
		d.back()
		return n
	}
	s.harm = d
	h.calm()
	found := h.doctor(ctx, n, false)
	err := h.attempt(ctx, n)
	if h.checkSeen(n); len(s.wrong) > 0 {
		return n
	}
	if err == nil {
		return n
	}
	switch {
	case !saysDamage(err):
		s.wrongly("%s is damaged (%s), and a run ends with %v", d.file, d.did, err)
	case errors.Is(err, appendlog.ErrDamaged) && d.ofState() && d.now.there && len(found) == 0:
		s.wrongly("%s is damaged (%s): a run says %v, and doctor says nothing", d.file, d.did, err)
	default:
		n = h.mend(ctx, n)
	}
	return n
}

// isUnseen reports whether only leadetl verify can see what has happened to a part, or nobody: its checksum is
// taken after that, or a comparison reads other values in it.
func (h *history) isUnseen(d *harm, n night) bool {
	s := h.disturbed
	if path.Ext(d.file) != ".parquet" || len(d.now.text) != len(d.before.text) {
		return false
	}
	if _, finished := s.files(n.out)[sinks.SuccessName]; !finished && !d.inBucket && strings.HasPrefix(d.file, s.at(n.out)) {
		isRead := s.plan.changes && !strings.HasSuffix(d.now.text, "PAR1")
		return !isRead && (s.plan.sumLater || hashlanes.FasterTogether())
	}
	_, err := rowsOf(d.now.text)
	return err == nil && (n.compares || h.plan.changes)
}

// mend does what a user does whose run says that something is damaged: repair the state, else overwrite the
// dataset, else bring the file back from a copy.
func (h *history) mend(ctx context.Context, n night) night {
	s, d := h.disturbed, h.disturbed.harm
	back := d.isIn(format.MarkName) || d.isIn("nights/") && h.plan.changes || n.compares
	for _, by := range []string{"doctor", "overwrite", "copy"} {
		switch {
		case by == "copy":
			d.back()
			s.harm = nil
			return n
		case back, by == "doctor" && !d.ofState():
			continue
		case by == "doctor":
			h.doctor(ctx, n, true)
		case by == "overwrite":
			n.overwrite, n.anew, h.anew[n.number] = true, true, true
		}
		err := h.attempt(ctx, n)
		switch h.checkSeen(n); {
		case len(s.wrong) > 0:
			return n
		case err == nil:
			n.overwrite = false
			return n
		case !saysDamage(err):
			s.wrongly("%s is damaged (%s), and after %s a run ends with %v", d.file, d.did, by, err)
		}
	}
	return n
}

// attempt does a night whose run may say that something is damaged, again after an error that is named, and after it has
// removed a damaged part.
func (h *history) attempt(ctx context.Context, n night) (err error) {
	for range 3 {
		err = h.disturbed.life(ctx, n, 0, false).err
		time.Sleep(worldtest.Outage)
		removed := errors.Is(err, sinks.ErrCorrupt) && !h.disturbed.harm.isThere(h.disturbed)
		if err == nil || !isNamed(err) && !removed {
			return err
		}
	}
	if errors.Is(err, purchase.ErrRefused) { // finish knows what to do
		return nil
	}
	return err
}

// doctor is leadetl doctor --state. It returns what is damaged, before a repair.
func (h *history) doctor(ctx context.Context, n night, repair bool) (found []error) {
	s := h.disturbed
	s.lives++
	machine := s.local
	if s.plan.onS3 {
		machine = s.world.Another(s.lives)
	}
	ctx = machine.Begin(ctx, 0)
	defer func() {
		machine.Crash()
		s.disk.Restart(false)
	}()
	p, err := s.start(ctx, machine, n, false)
	if err != nil {
		return []error{err} // the mark
	}
	defer p.close()
	state := p.runs()
	if p.state != nil {
		state = journal.OnS3(p.state.AsFound())
	}
	runs, err := state.Inspect(ctx)
	for _, run := range runs {
		found = append(found, run.Damages...)
	}
	nights, other := state.InspectNights(ctx)
	work, failed := bucket.InspectWork(p.home)
	found = append(append(found, nights.Damages...), work...)
	if err := errors.Join(err, other, failed); err != nil {
		s.wrongly("%s is damaged (%s), and doctor fails: %v", s.harm.file, s.harm.did, err)
	}
	if repair {
		_, err := state.Repair(ctx)
		_, other := state.RepairNights(ctx)
		_, failed := bucket.RepairWork(p.home)
		if err := errors.Join(err, other, failed); err != nil && !errors.Is(err, appendlog.ErrDamaged) {
			s.wrongly("%s is damaged (%s), and its repair fails: %v", s.harm.file, s.harm.did, err)
		}
	}
	return found
}

// saysDamage reports whether an error says that something is not as it was written, or is missing.
func saysDamage(err error) bool {
	for _, known := range []error{appendlog.ErrDamaged, sinks.ErrCorrupt, sinks.ErrNoDataset, begin.ErrOtherJob, objects.ErrLate, objects.ErrChecksum, fs.ErrNotExist, steps.ErrNotBegun, steps.ErrNotDivided, changes.ErrIncomparable} {
		if errors.Is(err, known) {
			return true
		}
	}
	_, ofFormat := errors.AsType[*format.Error](err)
	_, ofJob := errors.AsType[*job.Error](err)
	_, ofManifest := errors.AsType[*sinks.ManifestError](err)
	_, missing := errors.AsType[*steps.MissingError](err)
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, value := errors.AsType[*json.UnmarshalTypeError](err)
	_, moment := errors.AsType[*time.ParseError](err)
	named := slices.ContainsFunc([]string{"is damaged", "is missing", ".parquet: parquet: ", "leadetl verify"}, func(text string) bool { return strings.Contains(err.Error(), text) })
	return ofFormat || ofJob || ofManifest || missing || syntax || value || moment || named
}

// mourn looks at what is damaged still once a night is finished: leadetl verify says so, or it is a report, or it is
// listed among what nobody finds. Then it brings the file back.
func (h *history) mourn(n night) {
	s, d := h.disturbed, h.disturbed.harm
	if d == nil || len(s.wrong) > 0 {
		return
	}
	s.harm = nil
	if !d.isThere(s) || d.ofState() {
		return
	}
	defer d.back()
	of := n
	for number := range n.number {
		if before := h.night(number); before.out != n.out && strings.HasPrefix(d.file, s.at(before.out)) {
			of = before
		}
	}
	name := strings.TrimPrefix(d.file, s.at(of.out))
	switch problems := of.verify(s.files(of.out)); {
	case name == sinks.ReportName, name == sinks.ReportPageName:
	case of.number == n.number && len(d.now.text) != len(d.before.text):
		s.wrongly("%s is damaged (%s), and night %d is finished with it", d.file, d.did, n.number)
	case len(problems) > 0:
	default:
		s.wrongly("%s is damaged (%s), and nobody says so", d.file, d.did)
	}
}
