package steps

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/exchange"
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
	if err := r.fill(ctx, slices, w.Lots[lot], keys, verdicts); err != nil {
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

// fill adds what is known of each key. Keys and stored answers are in the order of
// their hashes. A row whose key has a verdict is as one that the service refused:
// it fails, with the reason.
func (r *Run) fill(ctx context.Context, to *exchange.Slices, about exchange.Lot, keys []exchange.LotKey, verdicts map[answers.Hash]string) error {
	add := func(k exchange.LotKey, f answers.Found) {
		if reason, failed := verdicts[k.Hash]; failed {
			f = answers.Found{Stored: true, Answer: answers.Answer{Outcome: answers.Refused, Reason: reason}}
		}
		to.Add(k.Hash, k.Parts, f)
	}
	for item, err := range r.stored(ctx, about, true) {
		if err != nil {
			return err
		}
		for len(keys) > 0 && keys[0].Hash.Compare(item.Hash) < 0 {
			add(keys[0], answers.Found{})
			keys = keys[1:]
		}
		if len(keys) > 0 && keys[0].Hash == item.Hash {
			add(keys[0], r.found(item))
			keys = keys[1:]
		}
	}
	for _, k := range keys {
		add(k, answers.Found{})
	}
	return nil
}
