package world

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// damaged is a state in a folder whose log was damaged between two lives.
type damaged struct {
	*history
	all  []*history // of its services
	was  holding    // before the damage
	file string
	did  string
	text map[string]string // the files of the log after the damage
}

// holding is what a store holds: what is found of each key of each service, and what is paid.
type holding struct {
	found [][]answers.Found
	paid  []answers.Spending
}

// suffer damages a file of the log, as a disk does that lies. An inspection and a run say so, and change
// nothing; a repair keeps the file, and what is lost as spent. Or nothing is lost, or what a crash might have
// taken too: then all that was there is put back.
func (h *history) suffer(ctx context.Context, all ...*history) {
	failing := h.disk.Failing
	h.disk.Failing = 0
	ctx = h.world.Begin(ctx, 0)
	defer func() {
		h.disk.Failing = failing
		h.world.Crash()
		h.disk.Restart(false)
	}()
	before := h.disk.Files()
	names := slices.Sorted(maps.Keys(before))
	isLog := func(name string) bool {
		return strings.HasSuffix(name, ".log") && strings.HasPrefix(before[name], "Log")
	}
	if !slices.ContainsFunc(names, isLog) {
		return
	}
	h.plan.damaged = 0
	if h.world.Below(2, "damages a log", h.lives) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !isLog(name) })
	}
	d := &damaged{history: h, all: all, file: names[h.world.Below(len(names), "damaged file", h.lives)]}
	kept := h.dir + "-kept"
	defer os.RemoveAll(kept)
	if h.unexpected("copy", h.copyTo(kept)); !d.hold(ctx, answers.InFolder(kept), answers.Options{}, &d.was) {
		return
	}
	back := h.disk.Keep()
	other := ""
	if isLog(d.file) {
		other = fmt.Sprintf("answers-%08d.log", h.world.Below(40, "doubled as", h.lives))
	}
	if d.did = h.disk.Damage(d.file, other, h.lives); d.did == "" {
		return
	}
	if d.text = h.disk.Files(); !d.bear(context.WithoutCancel(ctx), before[d.file]) {
		back()
	}
}

// bear looks at what is damaged, repairs it and goes on. It reports whether the state can be lived with.
func (d *damaged) bear(ctx context.Context, before string) bool {
	d.world.Note("%s is %s", d.file, d.did)
	inspected, err := answers.Inspect(ctx, answers.On(d.disk))
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
	case err != nil && (inspected.Whole() || !errors.Is(err, appendlog.ErrDamaged)):
		d.wrongly("%s is %s: an inspection finds %v, and a run %v", d.file, d.did, inspected.Damages, err)
	case err == nil:
		return d.isHarmless(ctx) || d.mayBeTorn(before)
	default:
		d.repair(ctx, inspected)
	}
	return true
}

// hasCopy reports whether the damaged file has a copy, so that a run can do without it.
func (d *damaged) hasCopy() bool { return strings.HasPrefix(d.file, "manifest-") }

// use does what a run does that finds damage: it reads all answers. The files stay as they are.
func (d *damaged) use(ctx context.Context) error {
	back := d.disk.Keep()
	defer back()
	s, err := answers.Open(context.Background(), answers.On(d.disk), d.stored())
	if err != nil {
		if now := d.disk.Files(); !maps.Equal(now, d.text) {
			d.wrongly("%s is %s, and who finds it changes files", d.file, d.did)
		}
		return err
	}
	for i, h := range d.all {
		found, failed := s.Lookup(ctx, h.scope, h.plan.keys, answers.Freshness{}, true, nil)
		for n, f := range found {
			d.compareAnswer(i, n, f)
		}
		err = errors.Join(err, failed)
	}
	d.unexpected("close", s.Close())
	return err
}

// hold reads what a store holds. It reports whether it can be read.
func (d *damaged) hold(ctx context.Context, at answers.Place, o answers.Options, into *holding) bool {
	s, err := answers.Open(context.Background(), at, o)
	if err != nil {
		d.wrongly("open: %v", err)
		return false
	}
	*into = holding{}
	for _, h := range d.all {
		found, err := s.Lookup(ctx, h.scope, h.plan.keys, answers.Freshness{}, true, nil)
		d.unexpected("look up all keys", err)
		for i := range found {
			found[i].Answer.Body = bytes.Clone(found[i].Answer.Body)
		}
		into.found = append(into.found, found)
		for run := range h.plan.runs {
			paid, _, err := s.SumSpent(ctx, h.payer(runName(run)))
			d.unexpected("sum what is spent", err)
			into.paid = append(into.paid, paid)
		}
	}
	d.unexpected("close", s.Close())
	return true
}

// isHarmless reports whether a run finds all that was there.
func (d *damaged) isHarmless(ctx context.Context) bool {
	var now holding
	if !d.hold(ctx, answers.On(d.disk), d.stored(), &now) {
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
func (d *damaged) mayBeTorn(before string) bool {
	now, torn := d.text[d.file], false
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

// A record begins a sector, with its length behind the form; see appendlog.
const sectorSize, recordHeader = 512, 40

// repair repairs the state, with a process that dies on the way. Damaged files are kept, and what is lost is
// said to be lost, and stays counted.
func (d *damaged) repair(ctx context.Context, inspected answers.Inspection) {
	for i := range 3 {
		d.world.Crash()
		d.disk.Restart(i > 0 && d.world.Below(3, "power cut of a repair", d.lives, i) > 0)
		last := 1 + d.world.Below(12, "repair", d.lives, i)
		if i == 2 {
			last = 0
		}
		_, err := answers.Repair(d.world.Begin(ctx, last), answers.On(d.disk))
		if d.unexpected("repair", err); d.world.Alive() == nil {
			break
		}
	}
	ctx = d.world.Begin(ctx, 0)
	for name, text := range d.text {
		named := slices.ContainsFunc(inspected.Damages, func(damage error) bool {
			of, is := errors.AsType[*appendlog.Damage](damage)
			return is && of.Offset >= 0 && filepath.Base(of.File) == name || !is && strings.Contains(damage.Error(), name)
		})
		if now := d.disk.Files(); named && now[name+".damaged"] != text {
			d.wrongly("%s is %s, and a repair does not keep it: %v of %v", name, d.did, slices.Sorted(maps.Keys(now)), inspected.Damages)
		}
	}
	again, err := answers.Inspect(ctx, answers.On(d.disk))
	if d.unexpected("inspect what is repaired", err); !again.Whole() {
		d.wrongly("%s is %s, and damaged after a repair: %v", d.file, d.did, again.Damages)
	}
	var now holding
	if d.hold(ctx, answers.On(d.disk), d.stored(), &now) {
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
	h.known.mu.Unlock()
	h.service.disturb(h.plan.keys[key])
	if !listed {
		h.service.lose(h.plan.keys[key])
	}
}
