package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/exchange"
	"github.com/leadetl/leadetl/pipeline/purchase"
)

const (
	// lotKeys is how many keys a lot has at most, counted part by part. So few
	// fit into memory, with what is known of them.
	lotKeys = 100_000
	// lotsPerLane is how many lots each lane has at least, if there are enough keys.
	lotsPerLane = 8
	// readAtOnce is how many objects of a wave are read at a time.
	readAtOnce = 16
)

// wave says which parts are asked about together, and how their keys are cut into
// lots.
type wave struct {
	Parts []int          `json:"parts"` // the i-th is bit i of exchange.LotKey.Parts
	Lots  []exchange.Lot `json:"lots"`
	Keys  int64          `json:"keys"`
	Asked int64          `json:"asked"` // rows with these keys
}

// Lots returns the number of lots of a wave, after all its parts were spread.
func (r *Run) Lots(ctx context.Context, number int) (int, error) {
	if r.Finished() {
		return 0, nil
	}
	w, err := r.wave(ctx, number)
	return len(w.Lots), err
}

// wave reads the lots of a wave, or cuts them.
func (r *Run) wave(ctx context.Context, number int) (w wave, err error) {
	if err := r.needService(); err != nil {
		return w, err
	}
	if err := r.getJSON(ctx, lotsName(number), &w); !errors.Is(err, fs.ErrNotExist) {
		return w, err
	}
	d, err := r.Division(ctx)
	if err != nil {
		return w, err
	}
	if number < 0 || number >= d.Waves() {
		return w, fmt.Errorf("wave %d of %d does not exist", number, d.Waves())
	}
	if w, err = r.cutWave(ctx, number, d); err != nil {
		return w, err
	}
	if err := r.createJSON(ctx, lotsName(number), w); err != nil {
		return w, err
	}
	return w, r.getJSON(ctx, lotsName(number), &w) // another process may have been first
}

// cutWave cuts the keys of a wave into lots.
func (r *Run) cutWave(ctx context.Context, number int, d Division) (w wave, err error) {
	first := number * PartsPerWave
	within := pipeline.Window{First: first, Parts: min(PartsPerWave, d.Parts-first)}
	recorded, err := r.begun.Recorded(within, r.partsIn(ctx, within))
	if err != nil {
		return w, err
	}
	for part := first; part < first+within.Parts; part++ {
		var s Spread
		err := r.getJSON(ctx, spreadName(part), &s)
		switch missing := errors.Is(err, fs.ErrNotExist); {
		case missing && recorded[part]:
			continue // an earlier run made it
		case missing:
			return w, fmt.Errorf("%w: part-%05d is not spread", ErrNotReady, part)
		case err != nil:
			return w, err
		}
		w.Parts = append(w.Parts, part)
		w.Asked += s.Asked
	}
	var counts [exchange.Buckets]int64
	var counting sync.Mutex
	err = r.eachKeys(ctx, w, func(_ int, k *exchange.Keys) error {
		counting.Lock()
		defer counting.Unlock()
		k.AddTo(&counts)
		w.Keys += k.Count()
		return nil
	})
	w.Lots = exchange.CutLots(&counts, r.keysPerLot(w.Keys))
	return w, err
}

// keysPerLot is how many keys a lot of a wave has at most. Lanes divide lots, so
// there are some for each.
func (r *Run) keysPerLot(keys int64) int64 {
	if lanes := int64(r.run.Remote.Lanes); lanes > 1 {
		return min(keys/(lanes*lotsPerLane)+1, lotKeys)
	}
	return lotKeys
}

// eachKeys opens the keys of the parts of a wave, some at a time, and calls do with
// each, from several goroutines.
func (r *Run) eachKeys(ctx context.Context, w wave, do func(i int, k *exchange.Keys) error) error {
	if len(w.Parts) == 0 {
		return nil
	}
	return each(ctx, len(w.Parts), readAtOnce, func(ctx context.Context, i int) error {
		o, closeObject, err := r.openObject(ctx, keysName(w.Parts[i]))
		if err != nil {
			return err
		}
		k, err := exchange.OpenKeys(o)
		if err == nil {
			err = do(i, k)
		}
		return errors.Join(err, closeObject())
	})
}

// Gathered counts the distinct keys of a lot.
type Gathered struct {
	Keys    int64 `json:"keys"`
	Ask     int64 `json:"ask"`     // of Keys: the others are answered
	Matched int64 `json:"matched"` // of the answered
}

func count(keys []exchange.LotKey) (g Gathered) {
	for _, k := range keys {
		g.Keys++
		switch {
		case k.Ask:
			g.Ask++
		case k.Matched:
			g.Matched++
		}
	}
	return g
}

// Gather merges the keys of a lot from all parts of a wave, and decides which of
// them are asked: those without a stored answer that was fresh when the run was
// begun. The decision is written once.
func (r *Run) Gather(ctx context.Context, number, lot int) (g Gathered, err error) {
	if r.Finished() {
		return g, nil
	}
	w, err := r.waveOf(ctx, number, lot)
	if err != nil {
		return g, err
	}
	keys, err := r.lot(ctx, number, lot)
	if err == nil || !errors.Is(err, ErrNotReady) {
		return count(keys), err
	}
	about := w.Lots[lot]
	lists := make([][]exchange.Key, len(w.Parts))
	if err := r.eachKeys(ctx, w, func(i int, k *exchange.Keys) (err error) {
		lists[i], err = k.Read(about.From, about.To)
		return err
	}); err != nil {
		return g, err
	}
	keys = exchange.Merge(lists)
	if err := r.decide(ctx, about, keys); err != nil {
		return g, err
	}
	if err := r.create(ctx, lotName(number, lot), exchange.EncodeLot(keys)); err != nil {
		return g, err
	}
	keys, err = r.lot(ctx, number, lot) // another process may have been first
	return count(keys), err
}

// waveOf is wave, for one of its lots.
func (r *Run) waveOf(ctx context.Context, number, lot int) (wave, error) {
	w, err := r.wave(ctx, number)
	if err == nil && (lot < 0 || lot >= len(w.Lots)) {
		err = fmt.Errorf("lot %d of %d does not exist", lot, len(w.Lots))
	}
	return w, err
}

// lot reads the keys of a lot, after Gather.
func (r *Run) lot(ctx context.Context, number, lot int) ([]exchange.LotKey, error) {
	name := lotName(number, lot)
	data, err := r.folder.Get(ctx, r.Name(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", ErrNotReady, r.at(name))
	}
	if err != nil {
		return nil, err
	}
	return exchange.DecodeLot(r.at(name).String(), data)
}

// decide decides which keys are asked, as a buyer would at the moment when the run
// was begun.
func (r *Run) decide(ctx context.Context, about exchange.Lot, keys []exchange.LotKey) error {
	remote, began, rest := r.run.Remote, r.Header().BegunAt, keys
	for i := range keys {
		keys[i].Ask = !remote.Offline
	}
	for item, err := range r.stored(ctx, about, false) {
		if err != nil {
			return err
		}
		n, found := slices.BinarySearchFunc(rest, item.Hash, func(k exchange.LotKey, h answers.Hash) int { return k.Hash.Compare(h) })
		rest = rest[n:]
		if !found {
			continue
		}
		if remote.Decide(r.run.Job.Operation, r.found(item), began, began) == purchase.UseStored {
			rest[0].Ask, rest[0].Matched = false, item.Outcome == answers.Matched
		}
	}
	return nil
}

// stored lists the stored answers to the questions of a lot.
func (r *Run) stored(ctx context.Context, about exchange.Lot, bodies bool) func(func(answers.Item, error) bool) {
	return r.state.Within(ctx, r.scope(), exchange.FirstHash(about.From), exchange.LastHash(about.To-1), bodies)
}

// found is what is known of a question with a stored answer.
func (r *Run) found(item answers.Item) answers.Found {
	item.Answer.Run = ""
	return answers.Found{Stored: true, Fresh: r.run.Remote.Freshness(r.Header().BegunAt).Of(item.Outcome, item.Received), Answer: item.Answer}
}

// each does work for some numbers, several at a time.
func each(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(atOnce)
	for i := range n {
		p.Go(func(ctx context.Context) error { return do(ctx, i) })
	}
	return p.Wait()
}
