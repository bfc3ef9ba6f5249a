package steps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/exchange"
	"github.com/leadetl/leadetl/pipeline/outcome"
)

// Share gives each part of a wave what is known of its keys in a lot, after all
// lots of the wave were asked.
func (r *Run) Share(ctx context.Context, number, lot int) (err error) {
	if r.Finished() {
		return nil
	}
	w, err := r.waveOf(ctx, number, lot)
	if err != nil {
		return err
	}
	if done, err := r.has(ctx, slicesName(number, lot)); done || err != nil {
		return err
	}
	keys, err := r.lot(ctx, number, lot)
	if err != nil {
		return err
	}
	verdicts, err := r.verdicts(ctx, number, lot)
	if err != nil {
		return err
	}
	file, err := newSpool(r.run.StateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	slices := exchange.NewSlices()
	counts, err := r.fill(ctx, slices, w.Lots[lot], keys, verdicts)
	if err != nil {
		return err
	}
	if err := r.createJSON(ctx, countsName(number, lot), counts); err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	if err := errors.Join(slices.Write(buffered), buffered.Flush()); err != nil {
		return err
	}
	return file.create(ctx, r, slicesName(number, lot))
}

// verdicts reads why keys of a lot have no answer.
func (r *Run) verdicts(ctx context.Context, number, lot int) (map[answers.Hash]string, error) {
	if r.run.Remote.Offline {
		return nil, nil
	}
	if asked, err := r.has(ctx, askedName(number)); err != nil || !asked {
		return nil, errors.Join(err, fmt.Errorf("%w: wave %d is not asked", ErrNotReady, number))
	}
	name := verdictsName(number, lot)
	data, err := r.folder.Get(ctx, r.Name(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", ErrNotReady, r.at(name))
	}
	if err != nil {
		return nil, err
	}
	all, err := exchange.DecodeVerdicts(r.at(name).String(), data)
	byHash := make(map[answers.Hash]string, len(all))
	for _, v := range all {
		byHash[v.Hash] = v.Reason
	}
	return byHash, err
}

// lotCounts counts the keys of a lot, for the report.
type lotCounts struct {
	Keys    int64 `json:"keys"`
	Matched int64 `json:"matched"`
	Stored  int64 `json:"stored"` // answered without a call for this wave
	Refused int64 `json:"refused"`
}

func (c *lotCounts) add(more lotCounts) {
	c.Keys, c.Matched, c.Stored, c.Refused = c.Keys+more.Keys, c.Matched+more.Matched, c.Stored+more.Stored, c.Refused+more.Refused
}

// count counts a key. byUs says that the run paid for its answer. A key that was
// not to be asked, and one that another run bought meanwhile, took no call.
func (c *lotCounts) count(k exchange.LotKey, f answers.Found, byUs bool) {
	c.Keys++
	refused := f.Stored && f.Answer.Outcome == answers.Refused
	switch {
	case refused && k.Ask && strings.HasPrefix(f.Answer.Reason, outcome.ReasonRefused):
		c.Refused++
	case f.Stored && (!k.Ask || !refused && !byUs):
		c.Stored++
	}
	if f.Stored && f.Answer.Outcome == answers.Matched {
		c.Matched++
	}
}

// fill adds what is known of each key. Keys and stored answers are in the order of
// their hashes. A row whose key has a verdict is as one that the service refused:
// it fails, with the reason.
func (r *Run) fill(ctx context.Context, to *exchange.Slices, about exchange.Lot, keys []exchange.LotKey, verdicts map[answers.Hash]string) (counts lotCounts, err error) {
	add := func(k exchange.LotKey, f answers.Found, byUs bool) {
		reason, failed := verdicts[k.Hash]
		if failed {
			f = answers.Found{Stored: true, Answer: answers.Answer{Outcome: answers.Refused, Reason: reason}}
		}
		to.Add(k.Hash, k.Parts, f)
		counts.count(k, f, byUs)
	}
	for item, err := range r.stored(ctx, about, true) {
		if err != nil {
			return counts, err
		}
		for len(keys) > 0 && keys[0].Hash.Compare(item.Hash) < 0 {
			add(keys[0], answers.Found{}, false)
			keys = keys[1:]
		}
		if len(keys) > 0 && keys[0].Hash == item.Hash {
			add(keys[0], r.found(item), item.Run == r.Header().Run)
			keys = keys[1:]
		}
	}
	for _, k := range keys {
		add(k, answers.Found{}, false)
	}
	return counts, nil
}
