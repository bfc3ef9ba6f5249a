package world

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// firstRecorder is the number of the first life of a machine that keeps a journal.
const firstRecorder = 1000

// recorder is a machine whose processes record the parts of datasets in a journal, one dataset
// after the other in one place.
type recorder struct {
	world   *worldtest.World
	disk    *worldtest.Disk
	listed  *worldtest.Disk // has the nights
	crashes int
	span    int // steps of a life before its crash, at most
	parts   int // of a dataset
	workers int
	lives   int

	mu     sync.Mutex
	runs   []*run // that may have the journal
	found  map[int]*register
	judged map[string]*register // by run
	night  register             // the run that is listed last
	wrong  []string
}

// run is what is known of the work on a dataset.
type run struct {
	header   journal.Header // its Job is the fingerprint of its lists
	parts    map[int]*register
	removing bool // its files may be gone
}

// register is what a text may be that is replaced as a whole: what was stored last, or, until the
// next one is stored, what was tried since.
type register struct {
	stored string
	tried  []string
}

// store stores a text. It is in doubt until do returns without an error.
func (r *register) store(mu *sync.Mutex, text string, do func() error) error {
	mu.Lock()
	r.tried = append(r.tried, text)
	mu.Unlock()
	err := do()
	if err == nil {
		mu.Lock()
		*r = register{stored: text}
		mu.Unlock()
	}
	return err
}

func (r *register) mayBe(text string) bool {
	return r != nil && (r.stored == text || slices.Contains(r.tried, text)) || r == nil && text == ""
}

// liveRecording lets the machine of a journal live.
func liveRecording(w *worldtest.World, l worldtest.Limits) (wrong []string, lives int) {
	in := func(what string, from, to int) int { return from + w.Below(to-from+1, "journal", what) }
	r := &recorder{
		world: w, disk: worldtest.NewDisk(w), listed: worldtest.NewDisk(w), crashes: min(in("crashes", 1, 8), l.Crashes), span: []int{10, 40, 120}[in("span", 0, 2)],
		parts: min(in("parts", 1, 6), l.Keys), workers: in("workers", 1, 3), runs: []*run{{}}, found: map[int]*register{}, judged: map[string]*register{},
	}
	r.disk.Name, r.disk.Missing = "journal", true
	r.listed.Name, r.listed.Missing = "nights", true
	if in("bad disk", 0, 2) == 0 {
		r.disk.Failing = float64(in("disk fails", 1, 20)) / 100
	}
	for i := range r.crashes + 2 {
		last := 1 + w.Below(r.span, "journal", "last step", i)
		if i >= r.crashes {
			last, r.disk.Failing = 0, 0
		}
		r.listed.Failing = r.disk.Failing
		r.lives++
		ctx := w.Begin(context.Background(), last)
		r.unexpected(r.process(ctx, w.Below(4, "journal", "remove", i) == 0))
		w.Crash()
		powerCut := w.Below(3, "journal", "power cut", i) > 0
		r.disk.Restart(powerCut)
		r.listed.Restart(powerCut)
		if w.Rest(time.Second); len(r.wrong) > 0 {
			break
		}
	}
	return r.wrong, r.lives
}

func (r *recorder) draw(n int, of ...any) int { return r.world.Below(n, append(of, r.lives)...) }

// text is a text of some blocks.
func (r *recorder) text(of ...any) string {
	return fmt.Sprint(of...) + strings.Repeat(" ", r.draw(1200, append(of, "size")...)) + "."
}

func (r *recorder) wrongly(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf("journal, life %d: ", r.lives)+fmt.Sprintf(format, args...))
}

// unexpected notes an error that nothing in the world explains.
func (r *recorder) unexpected(err error) {
	if err != nil && r.world.Alive() == nil && r.world.Faults() == 0 {
		r.wrongly("%v", err)
	}
}

// process makes the parts of a dataset that are not recorded. Without remove, it goes on with the
// dataset that is begun, or begins one of another job.
func (r *recorder) process(ctx context.Context, remove bool) (err error) {
	own, err := journal.InFolder(r.disk).Progress(ctx, "/out", false)
	if err != nil {
		return err
	}
	j := journal.New(own)
	now, judged, err := r.resume(j)
	if err = errors.Join(err, r.checkNights()); err != nil {
		return err
	}
	remove = remove || now.removing // it is removed again
	if job := fmt.Sprint("job ", r.draw(5, "job")/4); remove || now.header.JobID != job {
		if remove {
			if err := r.remove(j); err != nil {
				return err
			}
		}
		number := fmt.Sprint("run ", r.lives)
		now = &run{header: journal.Header{JobID: job, Run: number, Job: fmt.Appendf(nil, `"%d"`, r.draw(3, "lists"))}, parts: map[int]*register{}}
		judged, r.judged[number] = "", &register{}
	}
	if err := r.begin(j, now); err != nil {
		return err
	}
	r.judged[now.header.Run] = &register{stored: judged}
	err = r.record(ctx, j, now, judged == "")
	if err == nil && r.world.Alive() == nil && r.draw(2, "finish") == 0 {
		if err = r.finish(now); err == nil {
			err = r.remove(j)
		}
	}
	return errors.Join(err, j.Close())
}

// resume reads what is begun, and checks it: that of a run that may have the journal, with all that
// it stored.
func (r *recorder) resume(j *journal.Journal) (now *run, judged string, err error) {
	header, parts, err := j.Read()
	if err != nil {
		return nil, "", err
	}
	at := slices.IndexFunc(r.runs, func(known *run) bool { return known.header.Run == header.Run })
	if at < 0 {
		r.wrongly("the journal is of %q", header.Run)
		return nil, "", fs.ErrInvalid
	}
	known := r.runs[at]
	now = &run{header: known.header, parts: map[int]*register{}, removing: known.removing}
	r.world.Note("journal: %s with %d parts", header.Run, len(parts))
	for number := range r.parts {
		part, recorded := parts[number]
		if !known.parts[number].mayBe(part.Name) || recorded && part.Name == "" {
			r.wrongly("part %d of %s is recorded as %.40q", number, header.Run, part.Name)
		}
		if recorded && !known.removing {
			r.checkFound(j, number)
		}
		if recorded {
			now.parts[number] = &register{stored: part.Name}
		}
	}
	for number := range parts {
		if number < 0 || number >= r.parts {
			r.wrongly("part %d is recorded", number)
		}
	}
	if header.Run == "" {
		return now, "", nil
	}
	r.checkLists(j, now)
	verdict, err := j.Judged()
	for of := range verdict {
		judged = of
	}
	if err == nil && !r.judged[header.Run].mayBe(judged) && !(now.removing && judged == "") {
		r.wrongly("%s has the verdict %.40q", header.Run, judged)
	}
	return now, judged, err
}

func (r *recorder) checkFound(j *journal.Journal, number int) {
	found, err := j.Found(number)
	if r.unexpected(err); err == nil && !r.found[number].mayBe(string(found.Encode())) {
		r.wrongly("what part %d found is not what was kept", number)
	}
}

// listsOf is what the lists of a fingerprint hold.
func listsOf(fingerprint string) []byte {
	return bytes.Repeat([]byte(fingerprint+" "), 1+500*int(fingerprint[0]-'0'))
}

func (n *run) fingerprint() (text string) {
	_ = json.Unmarshal(n.header.Job, &text)
	return text
}

func (r *recorder) checkLists(j *journal.Journal, now *run) {
	from, err := j.Lists(now.fingerprint())
	var got []byte
	if err == nil && from != nil {
		got, err = io.ReadAll(from)
	}
	r.unexpected(err)
	if err == nil && !bytes.Equal(got, listsOf(now.fingerprint())) && !(now.removing && from == nil) {
		r.wrongly("the lists of %s have %d bytes", now.header.Run, len(got))
	}
}

// begin begins the journal of a run with the parts that it has.
func (r *recorder) begin(j *journal.Journal, now *run) error {
	fingerprint := now.fingerprint()
	err := j.KeepLists(fingerprint, func(w io.Writer) error {
		_, err := w.Write(listsOf(fingerprint))
		return err
	})
	if err != nil {
		return err
	}
	parts := map[int]sinks.Part{}
	for number, is := range now.parts {
		if is.stored != "" {
			parts[number] = sinks.Part{File: sinks.File{Name: is.stored}}
		}
	}
	for _, other := range r.runs { // whose dataset is gone
		if is := r.judged[other.header.Run]; is != nil && other.header.Run != now.header.Run {
			is.tried = append(is.tried, "")
		}
	}
	r.runs = append(r.runs, now)
	if err := j.Begin(now.header, parts); err != nil {
		return err
	}
	r.runs = []*run{now}
	return j.DropLists(fingerprint)
}

// remove ends the journal. A power cut may bring it back, with some of its files.
func (r *recorder) remove(j *journal.Journal) error {
	for _, known := range r.runs {
		known.removing = true
	}
	if !slices.ContainsFunc(r.runs, func(known *run) bool { return known.header.Run == "" }) {
		r.runs = append(r.runs, &run{})
	}
	return j.Remove()
}

// record makes the parts that are missing, a verdict, if there is none, and some parts again, as
// those are whose checksum comes later.
func (r *recorder) record(ctx context.Context, j *journal.Journal, now *run, judges bool) error {
	numbers := make(chan int, r.parts)
	for number := range r.parts {
		if now.parts[number] == nil {
			now.parts[number] = &register{}
		}
		if now.parts[number].stored == "" || r.draw(4, "again", number) == 0 {
			numbers <- number
		}
		if r.found[number] == nil {
			r.found[number] = &register{}
		}
	}
	close(numbers)
	errs := make([]error, r.workers)
	var working sync.WaitGroup
	for worker := range r.workers {
		working.Go(func() {
			for number := range numbers {
				if r.world.Pause("record", r.lives, number); errs[worker] == nil && ctx.Err() == nil {
					errs[worker] = r.part(j, now, number)
				}
			}
		})
	}
	if judges && r.draw(2, "judges") == 0 {
		r.world.Pause("judge", r.lives)
		verdict := r.text("verdict in life ", r.lives)
		errs = append(errs, r.judged[now.header.Run].store(&r.mu, verdict, func() error { return j.KeepJudged(map[string]bool{verdict: true}) }))
	}
	working.Wait()
	return errors.Join(errs...)
}

// part makes a part: what it found of the lists is kept before it is recorded.
func (r *recorder) part(j *journal.Journal, now *run, number int) error {
	var text []byte
	for i := range r.draw(150, "found", number) {
		text = binary.BigEndian.AppendUint64(append(text, 0), r.world.Draw("found", r.lives, number, i))
	}
	found, err := suppression.DecodeFound(text)
	if err == nil {
		err = r.found[number].store(&r.mu, string(found.Encode()), func() error { return j.KeepFound(number, found) })
	}
	if err != nil {
		return err
	}
	name := r.text("part ", number, " in life ", r.lives)
	r.world.Pause("publish", r.lives, number)
	return now.parts[number].store(&r.mu, name, func() error { return j.Record(number, sinks.Part{File: sinks.File{Name: name}}) })
}

// finish lists a run as the last night.
func (r *recorder) finish(now *run) error {
	n, err := journal.InFolder(r.listed).Nights(context.Background(), "nightly", now.header.Run)
	if err != nil {
		return err
	}
	night := journal.Night{JobID: now.header.JobID, CompletedAt: time.Now()}
	return r.night.store(&r.mu, now.header.Run, func() error { return n.Finished(night) })
}

// checkNights checks which night was the last.
func (r *recorder) checkNights() error {
	n, err := journal.InFolder(r.listed).Nights(context.Background(), "nightly", "the next one")
	if err != nil {
		return err
	}
	last := ""
	if before := n.Before(); before != nil {
		last = before.Out
	}
	if !r.night.mayBe(last) || n.Any() != (last != "") {
		r.wrongly("the last night is %q", last)
	}
	return nil
}
