package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/sinks"
)

// unsealed makes the journal ready before the first part is begun, and a
// finished dataset unfinished. It does so once. A dataset that is whole, and
// of which rows are asked again, stays finished until there is something
// better: a run that gets no answers leaves it as it is.
func (s *state) unsealed() error {
	s.unsealing.Do(func() {
		s.unsealErr = s.journal.begin(s.header, s.recorded)
		whole := s.finished != nil && s.improving && !s.damaged && slices.EqualFunc(s.finished.Inputs, s.inputs, untouched)
		if s.unsealErr == nil && s.finished != nil && !whole {
			s.unsealErr = s.withdrawn()
		}
	})
	return s.unsealErr
}

// withdrawn makes a finished dataset unfinished before a part of it is
// replaced. It does so once.
func (s *state) withdrawn() error {
	s.withdrawing.Do(func() {
		if s.finished != nil {
			s.withdrawErr, s.withdrew = s.Output.Withdraw(), true
		}
	})
	return s.withdrawErr
}

// keep adds a part that an earlier run made.
func (s *state) keep(number int, p sinks.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[number] = p
	if !p.Summed() {
		s.unsummed = append(s.unsummed, number)
	}
	s.Progress.CountPart()
}

// publish records a part that this run made.
func (s *state) publish(ctx context.Context, number int, p sinks.Part) error {
	if err := s.journal.record(number, p); err != nil {
		return fmt.Errorf("record %s: %w", p.Name, err)
	}
	s.mu.Lock()
	s.parts[number] = p
	s.fresh.Add(p.Totals)
	s.made++
	s.mu.Unlock()
	s.Progress.CountPart()
	s.Log.Debug("part published", "part", p.Name, "rows", p.Rows, "bytes", p.Bytes)
	if p.Summed() { // known before it was published
		return nil
	}
	return s.sum(ctx, s.awaitSum(number))
}

func (s *state) result() *Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Result{Fresh: s.fresh, Made: s.made, Skipped: len(s.parts) - s.made}
	for _, p := range s.parts {
		r.Totals.Add(p.Totals)
	}
	return r
}

// A part counts as soon as it is published and recorded. Its checksum, which
// only the manifest needs, follows when enough parts wait for one that they
// can be read side by side.

// awaitSum notes a part without a checksum, and when that makes a full set of
// lanes, hands the set to the caller to sum.
func (s *state) awaitSum(number int) (full []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsummed = append(s.unsummed, number)
	if len(s.unsummed) < sinks.SumLanes {
		return nil
	}
	full, s.unsummed = s.unsummed, nil
	return full
}

// sumRest sums what is left at the end of a run, an even share a worker.
func (s *state) sumRest(ctx context.Context) error {
	s.mu.Lock()
	rest := s.unsummed
	s.unsummed = nil
	s.mu.Unlock()
	slices.Sort(rest)
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	share := (len(rest) + s.Workers - 1) / s.Workers
	for from := 0; from < len(rest); from += share {
		p.Go(func(ctx context.Context) error { return s.sum(ctx, rest[from:min(from+share, len(rest))]) })
	}
	return p.Wait()
}

// sum takes the checksums of some parts and records the parts again with
// them.
func (s *state) sum(ctx context.Context, numbers []int) error {
	if len(numbers) == 0 {
		return nil
	}
	parts := make([]sinks.Part, len(numbers))
	var files []*sinks.File
	s.mu.Lock()
	for i, number := range numbers {
		parts[i] = s.parts[number]
	}
	s.mu.Unlock()
	for i := range parts {
		files = append(files, parts[i].Unsummed()...)
	}
	if err := errors.Join(s.unsealed(), s.withdrawn()); err != nil {
		return err
	}
	if err := s.Output.Sum(ctx, files); err != nil {
		return err
	}
	for i, number := range numbers {
		if err := s.journal.record(number, parts[i]); err != nil {
			return err
		}
		s.mu.Lock()
		s.parts[number] = parts[i]
		s.mu.Unlock()
	}
	return nil
}
