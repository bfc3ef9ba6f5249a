package service

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// retainEvery is how often what was kept long enough is let go.
const retainEvery = 5 * time.Minute

// startUpkeep starts what is done again and again, until ctx ends.
func (s *Service) startUpkeep(ctx context.Context, running *sync.WaitGroup) {
	every := func(interval time.Duration, what string, do func(context.Context) error) {
		running.Go(func() { s.repeat(ctx, interval, what, do) })
	}
	every(rosterEvery, "read credentials", s.rosters.refresh)
	every(time.Second, "read balances", s.refreshBalances)
	every(retainEvery, "let go of what is no longer kept", s.retain)
	if s.options.Tokens != nil {
		every(time.Second, "read the keys of tokens", func(context.Context) error { return s.options.Tokens.Reload() })
	}
}

// repeat does something at an interval. It tells of the first of a row of
// errors, and of their end.
func (s *Service) repeat(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.log.Error("cannot "+what, "error", err)
		case err == nil && failing:
			s.log.Info("again possible to " + what)
		}
		failing = err != nil
	}
}

// refreshBalances reads the balances of those who called lately: others may
// have changed them.
func (s *Service) refreshBalances(ctx context.Context) error {
	for _, a := range s.rosters.present.Load().byID {
		if a.asked.Swap(false) {
			if _, err := s.freshBalance(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// retain lets go of what is kept long enough, in the state and in memory.
func (s *Service) retain(ctx context.Context) error {
	now := s.now()
	for _, b := range s.limits {
		b.Sweep(now)
	}
	s.guesses.Sweep(now)
	purged, err := s.state.Purge(ctx, now, s.options.Retention)
	if err == nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "let go of what is no longer kept", slog.Any("purged", purged))
	}
	return err
}
