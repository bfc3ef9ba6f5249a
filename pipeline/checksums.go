package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/sinks"
)

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
