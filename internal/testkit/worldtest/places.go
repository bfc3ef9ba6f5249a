package worldtest

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// placeVariable is one place whose trace is written: the number of a world and of a step.
const placeVariable = "LEADETL_WORLD_PLACE"

// Places are worlds whose life is tried at each of its steps.
type Places struct {
	Suite
	// Worlds is how many worlds there are. Their numbers begin at 0.
	Worlds int
	// Die lets a world live with a crash at its step number last; with 0 it only returns how many
	// steps there are.
	Die func(t *testing.T, w *World, dir string, world, last int) (wrong []string, steps int)
}

// Every kills each world at every nth of its steps, once each. It is called by TestEveryPlace.
func (p Places) Every(t *testing.T, nth int) {
	own, found := ownPart(t)
	if place := os.Getenv(placeVariable); place != "" {
		var world, last int
		_, err := fmt.Sscan(place, &world, &last)
		must(t, err)
		if !found {
			out, err := part{first: 1, step: 1, seeds: 1}.try(t, 30*time.Minute, os.Args[0], t.Name())
			if t.Log(out); err != nil {
				t.Error(err)
			}
			return
		}
		p.try(t, world, last, os.Stdout)
		return
	}
	if !found {
		cores := uint64(runtime.NumCPU())
		var processes sync.WaitGroup
		for core := range cores {
			processes.Go(func() {
				out, err := part{first: core, step: cores, seeds: nth}.try(t, 30*time.Minute, os.Args[0], t.Name())
				if t.Log(out); err != nil {
					t.Error(err)
				}
			})
		}
		processes.Wait()
		return
	}
	began, places, tried, nth := time.Now(), uint64(0), 0, own.seeds
	for world := range p.Worlds {
		steps := p.try(t, world, 0, nil)
		for last := 1 + world%nth; last <= steps && !t.Failed(); last += nth {
			if places++; places%own.step == own.first {
				must(t, os.WriteFile(own.at, fmt.Appendf(nil, "%d, killed at step %d", world, last), 0o600))
				p.try(t, world, last, nil)
				tried++
			}
		}
	}
	t.Logf("%d places in %s", tried, time.Since(began).Round(time.Millisecond))
}

// try kills a world at a place, and returns how many there are.
func (p Places) try(t *testing.T, world, last int, log io.Writer) (steps int) {
	one := p.Suite
	one.Live = func(t *testing.T, w *World, dir string, _ Limits) (wrong []string, lives int) {
		wrong, steps = p.Die(t, w, dir, world, last)
		return wrong, 1
	}
	r := one.run(t, uint64(world), whole, log)
	for _, wrong := range r.wrong {
		t.Errorf("world %d, killed at step %d: %s", world, last, wrong)
	}
	if len(r.wrong) > 0 {
		t.Errorf("see its trace with\n%s", repeating(t.Name(), placeVariable, fmt.Sprintf("'%d %d'", world, last)))
	}
	return steps
}
