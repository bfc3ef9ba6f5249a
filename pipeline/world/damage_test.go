package world

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// damaged is a state that was damaged between two lives: a file of its folder, or an object of its place on S3.
type damaged struct {
	*history
	all    []*history // of its services
	on     worldtest.Files
	life   int               // after which it was damaged
	was    holding           // before the damage
	before map[string]string // the files
	file   string
	did    string
	text   map[string]string // the files after the damage
}

// holding is what a store holds: what is found of each key of each service, and what is paid.
type holding struct {
	found [][]answers.Found
	paid  []answers.Spending
}

// suffer damages a file of the answers, as disks and stores do that lie. An inspection and a run say so, and change
// nothing; a repair keeps the file, and what is lost as spent. Or nothing is lost, or what a crash might have
// taken too: then all that was there is put back.
func (h *history) suffer(ctx context.Context, all ...*history) {
	defer h.withoutFaults()()
	d := &damaged{history: h, all: all, life: h.lives, on: h.disk}
	if h.bucket != nil {
		ctx, m := d.machine(ctx, 0, false)
		at, err := m.place(ctx)
		if m.unexpected("open", err); err != nil {
			return
		}
		d.on = worldtest.Objects{World: h.world, Store: h.objects, Below: strings.TrimPrefix(at.String(), "s3://")}
	}
	d.before = d.on.Files()
	names := slices.Sorted(maps.Keys(d.before))
	isManifest := func(name string) bool { return path.Ext(name) == ".json" }
	if !slices.ContainsFunc(names, d.isLog) || !slices.ContainsFunc(names, isManifest) { // nothing is stored
		return
	}
	h.plan.damaged = 0
	if !d.hold(ctx, &d.was) {
		return
	}
	if h.bucket != nil && h.world.Below(4, "lists lag", d.life) == 0 {
		d.lag(ctx)
		return
	}
	if h.world.Below(2, "damages a log", d.life) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !d.isLog(name) })
	}
	d.file = names[h.world.Below(len(names), "damaged file", d.life)]
	back, other := d.on.Keep(), d.other(names)
	if d.did = d.on.Damage(d.file, other, d.life); d.did == "" {
		return
	}
	if strings.HasPrefix(d.did, "doubled") {
		d.did, d.file = fmt.Sprintf("%s, which is %s", d.did, d.file), other
	}
	if d.text = d.on.Files(); !d.bear(ctx) {
		back()
	}
}

// withoutFaults lets the disk or the store do all that it is asked for, until faults are allowed again. What is
// under way arrives first.
func (h *history) withoutFaults() (allowed func()) {
	if h.bucket == nil {
		failing := h.disk.Failing
		h.disk.Failing = 0
		return func() {
			h.disk.Failing = failing
			h.world.Crash()
			h.disk.Restart(false)
		}
	}
	b, p := h.bucket, h.plan
	b.Failing, b.Away, b.Slow, b.Stale = 0, 0, 0, 0
	time.Sleep(2 * worldtest.Outage)
	b.Arrive()
	return func() {
		b.Failing, b.Away, b.Slow, b.Stale = p.bucketFails, p.bucketAway, p.bucketSlow, p.bucketStale
	}
}

// machine is the one that looks at the state next: the same, or another one. It ends with its last step, if that is
// not 0.
func (d *damaged) machine(ctx context.Context, last int, powerCut bool) (context.Context, *history) {
	m := d.history
	if d.bucket != nil {
		m = m.machine()
	} else {
		m.world.Crash()
		m.disk.Restart(powerCut)
	}
	return m.world.Begin(context.WithoutCancel(ctx), last), m
}

// place is where the answers are, for who looks at what is there.
func (h *history) place(ctx context.Context) (answers.Place, error) {
	if h.bucket == nil {
		return answers.On(h.disk), nil
	}
	state, err := h.stateOnS3(ctx)
	if err != nil {
		return answers.Place{}, err
	}
	return state.AsFound().Of(h.scope.Service), nil
}

func (d *damaged) isLog(name string) bool {
	if d.bucket != nil {
		return strings.HasPrefix(name, "log/")
	}
	return strings.HasSuffix(name, ".log") && strings.HasPrefix(d.before[name], "Log")
}

// other is a name that the file may be doubled under: of a log any, else that of one of its kind.
func (d *damaged) other(names []string) string {
	number := d.world.Below(40, "doubled as", d.life)
	if d.isLog(d.file) && d.bucket == nil {
		return fmt.Sprintf("answers-%08d.log", number)
	}
	if d.isLog(d.file) {
		return fmt.Sprintf("log/%010d", number)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == d.file || path.Ext(name) != path.Ext(d.file) || name[0] != d.file[0]
	})
	if len(names) == 0 {
		return ""
	}
	return names[number%len(names)]
}

// lag lets lists lack what was written of late. A run goes on, or says that it is to be tried again; nothing is lost.
func (d *damaged) lag(ctx context.Context) {
	d.file, d.did = "a list", "late"
	d.bucket.Stale, d.bucket.Lag = 1, time.Duration(1+d.world.Draw("lags", d.life)%uint64(30*time.Hour))
	if inspected, err := d.inspect(ctx); err != nil || !inspected.Whole() {
		d.wrongly("lists are late, and an inspection finds %v, %v", inspected.Damages, err)
	}
	if err := d.open(ctx, func(*history, opened) error { return nil }); err != nil && !asksAgain(err) {
		d.wrongly("lists are late, and a run says %v", err)
	}
	d.bucket.Stale, d.bucket.Lag = 0, 0
	if !d.isWrong() && !d.isHarmless(ctx) {
		d.wrongly("lists are late, and something is lost")
	}
}

// asksAgain reports whether an error asks for another try.
func asksAgain(err error) bool {
	return errors.Is(err, objects.ErrLate) || errors.Is(err, objects.ErrLockLost) || strings.Contains(err.Error(), "try again")
}

// bear looks at what is damaged, repairs it and goes on. It reports whether the state can be lived with.
func (d *damaged) bear(ctx context.Context) bool {
	d.world.Note("%s is %s", d.file, d.did)
	inspected, err := d.inspect(ctx)
	if err != nil {
		d.wrongly("inspect what is damaged: %v", err)
		return false
	}
	err = d.use(ctx)
	switch {
	case err == nil && !inspected.Whole() && !d.hasCopy():
		d.wrongly("%s is %s: a run uses what an inspection finds damaged: %v", d.file, d.did, inspected.Damages)
	case err == nil && !inspected.Whole():
		d.repair(ctx, inspected)
	case err != nil && (inspected.Whole() || !errors.Is(err, appendlog.ErrDamaged) && !errors.Is(err, objects.ErrLate)):
		d.wrongly("%s is %s: an inspection finds %v, and a run %v", d.file, d.did, inspected.Damages, err)
	case err == nil:
		return d.isHarmless(ctx) || d.mayBeTorn()
	default:
		d.repair(ctx, inspected)
	}
	return true
}

// inspect is an inspection.
func (d *damaged) inspect(ctx context.Context) (found answers.Inspection, err error) {
	ctx, m := d.machine(ctx, 0, false)
	at, err := m.place(ctx)
	if err == nil {
		found, err = answers.Inspect(ctx, at)
	}
	return found, err
}

// open lets a machine open the answers as a run does.
func (d *damaged) open(ctx context.Context, use func(m *history, s opened) error) error {
	ctx, m := d.machine(ctx, 0, false)
	s, err := m.openStore(ctx, false)
	if err == nil {
		err = use(m, s)
		m.unexpected("close", s.close())
	}
	return err
}

// use does what a run does that finds damage: it reads all answers. The files stay as they are, but for what tells
// an earlier process that it was replaced.
func (d *damaged) use(ctx context.Context) error {
	defer d.on.Keep()()
	opens := false
	err := d.open(ctx, func(_ *history, s opened) (err error) {
		opens = true
		for i, h := range d.all {
			found, failed := s.Lookup(ctx, h.scope, h.plan.keys, answers.Freshness{}, true, nil)
			for n, f := range found {
				d.compareAnswer(i, n, f)
			}
			err = errors.Join(err, failed)
		}
		return err
	})
	now := d.on.Files()
	maps.DeleteFunc(now, func(name, text string) bool {
		_, was := d.text[name]
		return !was && isFence("/"+name, []byte(text))
	})
	if !opens && !maps.Equal(now, d.text) {
		d.wrongly("%s is %s, and who finds it changes files: %v", d.file, d.did, slices.Sorted(maps.Keys(now)))
	}
	return err
}

// hold reads what a store holds, and changes nothing. It reports whether it can be read.
func (d *damaged) hold(ctx context.Context, into *holding) bool {
	defer d.on.Keep()()
	*into = holding{}
	err := d.open(ctx, func(m *history, s opened) error {
		for _, h := range d.all {
			found, err := s.Lookup(ctx, h.scope, h.plan.keys, answers.Freshness{}, true, nil)
			m.unexpected("look up all keys", err)
			for i := range found {
				found[i].Answer.Body = bytes.Clone(found[i].Answer.Body)
			}
			into.found = append(into.found, found)
			for run := range h.plan.runs {
				paid, _, err := s.SumSpent(ctx, h.payer(runName(run)))
				m.unexpected("sum what is spent", err)
				into.paid = append(into.paid, paid)
			}
		}
		return nil
	})
	if err != nil {
		d.wrongly("open: %v", err)
	}
	return err == nil
}

// hasCopy reports whether the damaged file has a copy, so that a run can do without it.
func (d *damaged) hasCopy() bool { return strings.HasPrefix(d.file, "manifest-") }

// isHarmless reports whether a run finds all that was there.
func (d *damaged) isHarmless(ctx context.Context) bool {
	var now holding
	if !d.hold(ctx, &now) {
		return false
	}
	same := slices.Equal(now.paid, d.was.paid)
	for i, found := range now.found {
		for n, f := range found {
			before := d.was.found[i][n]
			same = same && f.Stored == before.Stored && f.Open == before.Open
			d.compareAnswer(i, n, f)
		}
	}
	return same
}

// compareAnswer checks that damage makes no answer another.
func (d *damaged) compareAnswer(of, key int, now answers.Found) {
	if before := d.was.found[of][key]; now.Stored && before.Stored && (now.Answer.Outcome != before.Answer.Outcome || !bytes.Equal(now.Answer.Body, before.Answer.Body)) {
		d.wrongly("%s is %s, and key %d of %s has another answer", d.file, d.did, key, d.all[of].scope.Service)
	}
}

// mayBeTorn checks that damage which nobody has found might be what a crash left: of the records of the log, the
// last ones alone are changed. It reports false: what they had is not known to anybody.
func (d *damaged) mayBeTorn() bool {
	before, now, torn := d.before[d.file], d.text[d.file], false
	if d.bucket != nil {
		if now != "" || !d.isLast() && !strings.HasPrefix(d.file, "late/") {
			d.wrongly("%s is %s, which nobody finds, and what it had is lost", d.file, d.did)
		}
		return false
	}
	for at := 0; at+sectorSize <= len(before) && strings.HasPrefix(before[at:], "Log"); {
		end := at + (recordHeader+int(binary.LittleEndian.Uint32([]byte(before[at+4:])))+sectorSize-1)/sectorSize*sectorSize
		whole := end <= len(now) && now[at:end] == before[at:end]
		if torn && whole {
			d.wrongly("%s is %s, which nobody finds: the record at byte %d is lost, and it is not the last one", d.file, d.did, at)
		}
		torn, at = torn || !whole, end
	}
	if !torn || len(now) < len(before) {
		d.wrongly("%s is %s, which nobody finds: %d bytes of %d, and what it had is lost", d.file, d.did, len(now), len(before))
	}
	return false
}

// isLast reports whether the file was the last one of the log.
func (d *damaged) isLast() bool {
	last := ""
	for name := range d.before {
		if d.isLog(name) {
			last = max(last, name)
		}
	}
	return d.file == last
}

// A record begins a sector, with its length behind the form; see appendlog.
const sectorSize, recordHeader = 512, 40

// repair repairs the state, with a process that dies on the way. Damaged files are kept, and what is lost is
// said to be lost, and stays counted.
func (d *damaged) repair(ctx context.Context, inspected answers.Inspection) {
	most := 12
	if d.bucket != nil {
		most = 60
	}
	for i := range 3 {
		last := 1 + d.world.Below(most, "repair", d.life, i)
		if i == 2 {
			last = 0
		}
		ctx, m := d.machine(ctx, last, i > 0 && d.world.Below(3, "power cut of a repair", d.life, i) > 0)
		at, err := m.place(ctx)
		if err == nil {
			_, err = answers.Repair(ctx, at)
		}
		if m.unexpected("repair", err); m.world.Alive() == nil {
			break
		}
	}
	left := d.on.Files()
	for name, text := range d.text {
		named := slices.ContainsFunc(inspected.Damages, func(damage error) bool {
			of, is := errors.AsType[*appendlog.Damage](damage)
			return is && of.Offset >= 0 && strings.HasSuffix(of.File, name) || !is && strings.Contains(damage.Error(), name)
		})
		if named && left[name+".damaged"] != text {
			d.wrongly("%s is %s, and a repair does not keep it: %v of %v", name, d.did, slices.Sorted(maps.Keys(left)), inspected.Damages)
		}
	}
	again, err := d.inspect(ctx)
	if d.unexpected("inspect what is repaired", err); !again.Whole() {
		d.wrongly("%s is %s, and damaged after a repair: %v", d.file, d.did, again.Damages)
	}
	var now holding
	if d.hold(ctx, &now) {
		d.mourn(now, inspected.Lost)
	}
}

// mourn compares what is left with what was there: what is lost may be bought again.
func (d *damaged) mourn(now holding, lost answers.Lost) {
	gone := int64(0)
	for i, found := range now.found {
		of := d.all[i]
		for n, f := range found {
			before := d.was.found[i][n]
			if d.compareAnswer(i, n, f); !before.Stored && before.Open == "" || f.Stored {
				continue
			}
			if of.forgets(n, f.Open != ""); f.Open == "" {
				gone++
			}
		}
	}
	if gone > lost.Answers+lost.Intents {
		d.wrongly("%s is %s: %d questions are lost, and an inspection says %+v", d.file, d.did, gone, lost)
	}
	for i, paid := range now.paid {
		if before := d.was.paid[i]; paid.Answers < before.Answers {
			d.wrongly("%s is %s: %+v is paid after a repair, and %+v was before: %+v", d.file, d.did, paid, before, lost)
		}
	}
	d.disturb()
	d.known.lost = true
}

// forgets notes that the answer to a key is lost, and whether its call is listed still. If it is not, the key may be
// bought again.
func (h *history) forgets(key int, listed bool) {
	h.known.mu.Lock()
	delete(h.known.told, h.plan.first+key)
	delete(h.known.late, h.plan.first+key)
	h.known.mu.Unlock()
	h.service.disturb(h.plan.keys[key])
	if !listed {
		h.service.lose(h.plan.keys[key])
	}
}
