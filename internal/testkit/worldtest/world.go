// Package worldtest is a simulated machine for tests. What it keeps, and the moment at which
// it dies, follow from one number: the same seed gives the same faults.
//
// The one thing to know before using it: a crash does not abandon the program under test. From
// the crash on every operation returns ErrCrashed and changes nothing that survives, so all
// goroutines of the program return. The test then begins the next life on what survived.
package worldtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"sync"
	"time"
)

// ErrCrashed is the error of all operations after the crash.
var ErrCrashed = errors.New("the machine has crashed")

// World counts the operations of a machine, and ends its lives. It is safe from many
// goroutines.
type World struct {
	seed uint64
	log  io.Writer // nil: the trace is not written

	mu      sync.Mutex
	life    int
	steps   int
	last    int                    // the step at which the life ends, of those that may end it; 0 means never
	ending  func(what string) bool // says which may end it; nil means all
	endings int                    // steps of the life that may end it
	end     context.CancelCauseFunc
	dead    bool
	faults  int     // of this life
	commits int     // of this life
	failing float64 // probability that a COMMIT fails
	began   time.Time
	nap     time.Duration // the last step is followed by a sleep instead of the crash; 0 by the crash
	awake   chan struct{} // closed when the machine wakes; nil before it has slept
	fell    chan struct{} // closed when it falls asleep
	slept   time.Time     // when it fell asleep
	crashed time.Time     // when the life ended
}

// New makes a world before its first life. What happens in it is written to log, if not nil.
func New(seed uint64, log io.Writer) *World {
	if log != nil {
		log = &shared{to: log}
	}
	return &World{seed: seed, log: log, dead: true, began: time.Now()}
}

// Seed is the number that all follows from.
func (w *World) Seed() uint64 { return w.seed }

// shared is the log of several machines.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

// Write is that of io.Writer.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}

// Begin begins a life that ends at its step number last, with Crash, or never. The context
// ends with it.
func (w *World) Begin(ctx context.Context, last int) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, w.end = context.WithCancelCause(ctx)
	w.life, w.steps, w.endings, w.last, w.dead, w.faults, w.commits = w.life+1, 0, 0, last, false, 0, 0
	return ctx
}

// Another makes another machine of the world, whose first life has a number.
func (w *World) Another(life int) *World {
	return &World{seed: w.seed, log: w.log, life: life - 1, dead: true, began: w.began, fell: make(chan struct{})}
}

// SleepsFor makes the machine fall asleep at the last step of the life, for some time, in the
// place of the crash. Its clock goes on, and it neither sends nor gets anything.
func (w *World) SleepsFor(nap time.Duration) { w.nap = nap }

// EndsAt says which steps may end a life of the machine, by what they do. All others are not
// counted for its end.
func (w *World) EndsAt(ending func(what string) bool) { w.ending = ending }

// FellAsleep is closed when the machine falls asleep.
func (w *World) FellAsleep() <-chan struct{} { return w.fell }

// Slept reports whether the machine has fallen asleep. It may be awake again.
func (w *World) Slept() bool {
	select {
	case <-w.fell:
		return true
	default:
		return false
	}
}

// Awake waits while the machine sleeps, and then is Alive.
func (w *World) Awake() error {
	w.mu.Lock()
	awake := w.awake
	w.mu.Unlock()
	if awake != nil {
		<-awake
	}
	return w.Alive()
}

// LastAwake is now, or when the machine fell asleep: from then on nobody believes that it lives.
func (w *World) LastAwake() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.awake != nil {
		return w.slept
	}
	return time.Now()
}

// sleep lets the machine fall asleep. The caller holds w.mu.
func (w *World) sleep() {
	w.note("sleep")
	awake := make(chan struct{})
	w.awake, w.slept = awake, time.Now()
	time.AfterFunc(w.nap, func() {
		w.Note("wake")
		close(awake)
	})
	close(w.fell)
}

// Crash ends the life.
func (w *World) Crash() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crash()
}

func (w *World) crash() {
	if !w.dead {
		w.note("crash")
		w.dead, w.crashed = true, time.Now()
		w.end(ErrCrashed)
	}
}

// Rest waits for a time after the crash: how long the goroutines of the life took to return is
// a matter of chance.
func (w *World) Rest(d time.Duration) {
	w.mu.Lock()
	crashed := w.crashed
	w.mu.Unlock()
	time.Sleep(time.Until(crashed.Add(d)))
}

// Alive returns ErrCrashed after the crash.
func (w *World) Alive() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return ErrCrashed
	}
	return nil
}

// Steps is how many steps the life has made.
func (w *World) Steps() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps
}

// Faults is how many steps of the life failed without a crash.
func (w *World) Faults() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults
}

// step counts an operation that changes what survives. During the last one of a life the
// machine crashes: ours says that it was this one.
func (w *World) step(what string) (at int, ours bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return 0, false, ErrCrashed
	}
	w.steps++
	w.note(what)
	if w.ending != nil && !w.ending(what) {
		return w.steps, false, nil
	}
	w.endings++
	switch {
	case w.endings == w.last && w.nap > 0:
		w.sleep()
		return w.steps, true, nil
	case w.endings == w.last:
		w.crash()
		return w.steps, true, ErrCrashed
	}
	return w.steps, false, nil
}

// fault counts a failure that is the machine's.
func (w *World) fault(what string, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults++
	w.note("fault " + what)
	return err
}

// Draw returns a number that follows from the seed and from what it is drawn for. No draw
// depends on another, so the order of goroutines changes none.
func (w *World) Draw(of ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, append([]any{w.seed}, of...)...)
	return mix(h.Sum64())
}

// Below is Draw in [0,n).
func (w *World) Below(n int, of ...any) int { return int(w.Draw(of...) % uint64(n)) }

// Chance draws whether something of a probability happens.
func (w *World) Chance(p float64, of ...any) bool { return float64(w.Draw(of...)>>11)/(1<<53) < p }

// Pause waits for a moment of its own. What happens at one moment happens in an order that the
// scheduler may change while a goroutine is in a system call; what happens at two does not.
func (w *World) Pause(of ...any) {
	if w.Alive() != nil {
		return
	}
	time.Sleep(time.Duration(1 + w.Below(1_000_000, append(of, "pause")...)))
}

// mix spreads the bits of a number. It is that of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Note adds to the trace what happens, unless the machine has crashed.
func (w *World) Note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dead && w.log != nil {
		w.note(fmt.Sprintf(format, args...))
	}
}

func (w *World) note(what string) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%d %d %s %s\n", w.life, w.steps, time.Since(w.began), what)
	}
}
