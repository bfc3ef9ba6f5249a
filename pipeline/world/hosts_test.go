package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/objectstate"
)

// liveOnS3 lets a world live whose state is on S3. Each life is that of another machine, which
// takes over from nothing but the objects. One that fell asleep wakes later, and goes on.
func (h *history) liveOnS3(ctx context.Context) {
	h.world.Begin(ctx, 0)
	h.objects = s3test.NewMemory(nil)
	h.bucket = worldtest.NewBucket(h.world, fences{h.objects, h.known})
	h.bucket.Failing, h.bucket.Away, h.bucket.Slow, h.bucket.Stale = h.plan.bucketFails, h.plan.bucketAway, h.plan.bucketSlow, h.plan.bucketStale
	var machines sync.WaitGroup
	for range h.plan.crashes {
		m := h.machine()
		last := h.lastStepOf(m)
		nap := time.Duration(0)
		if h.world.Below(2, "sleeps", h.lives) == 0 {
			longest := []time.Duration{30 * time.Second, 5 * time.Minute, time.Hour, 3 * time.Hour}[h.world.Below(4, "nap", h.lives)]
			nap = 1 + time.Duration(h.world.Draw("sleeps", h.lives)%uint64(longest))
			m.world.SleepsFor(nap)
		}
		retry := h.plan.retry && h.world.Below(6, "retry", h.lives) == 0
		living, cut := context.WithCancelCause(ctx)
		ended := make(chan struct{})
		machines.Go(func() {
			defer cut(nil)
			defer close(ended)
			m.run(living, last, func(ctx context.Context) { m.process(ctx, retry) })
		})
		select {
		case <-ended:
		case <-m.world.FellAsleep():
			h.disturb()
			if h.plan.terms {
				time.AfterFunc(max(nap, lostAfter/3)+time.Second, func() { cut(errCutOff) })
			}
		}
		h.pauseOnS3()
		if !h.isWrong() && h.plan.damaged > 0 && h.lives >= h.plan.damaged {
			machines.Wait()
			h.suffer(ctx, h)
		}
		if h.isWrong() {
			break
		}
	}
	machines.Wait()
	if len(h.known.late) > 0 && !h.isWrong() { // who takes over what came too late dies when all is in files, and in no manifest
		m := h.machine()
		m.world.EndsAt(publishes.MatchString)
		m.run(ctx, 1, func(ctx context.Context) { m.process(ctx, false) })
		h.pauseOnS3()
	}
	h.bucket.Failing, h.bucket.Away, h.bucket.Slow, h.bucket.Stale = 0, 0, 0, 0
	time.Sleep(worldtest.Outage)
	if h.isWrong() {
		return
	}
	h.quiet(ctx, func(ctx context.Context, retry bool) {
		m := h.machine()
		m.run(ctx, 0, func(ctx context.Context) { m.process(ctx, retry) })
		h.pauseOnS3()
	})
	if !h.isWrong() {
		m := h.machine()
		m.run(ctx, 0, m.offline)
	}
}

// lastStepOf says at which step a machine ends: at any, or at a request that many others come
// before.
func (h *history) lastStepOf(m *history) int {
	if h.world.Below(2, "fateful", h.lives) > 0 {
		return 1 + h.world.Below(4*h.plan.span, "last step", h.lives)
	}
	f := fateful[h.world.Below(len(fateful), "which is fateful", h.lives)]
	m.world.EndsAt(f.request.MatchString)
	return 1 + h.world.Below(f.most, "last fateful step", h.lives)
}

// fate is one of the first requests of a kind.
type fate struct {
	request *regexp.Regexp
	most    int
}

var (
	appends   = regexp.MustCompile("^PUT .*/log/")
	publishes = regexp.MustCompile("^PUT .*/manifest-")
	releases  = regexp.MustCompile("^DELETE .*/lease/")
	fateful   = []fate{
		{appends, 4}, {appends, 4}, {appends, 8}, {publishes, 3}, {regexp.MustCompile("/late/"), 3},
		{regexp.MustCompile("^PUT .*/lease/"), 3}, {releases, 1}, {releases, 1},
	}
)

// fences is a store that notes which machine was the last one to take over the log.
type fences struct {
	http.Handler
	known *knowledge
}

// ServeHTTP is that of http.Handler.
func (f fences) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.Handler.ServeHTTP(w, r)
	if r.Method == http.MethodPut && w.(*httptest.ResponseRecorder).Code == http.StatusOK && isFence(r.URL.Path, body) {
		f.known.takesOver(r.Header.Get(worldtest.MachineHeader))
	}
}

// isFence reports whether an object begins a term of a log, and has no changes.
func isFence(path string, body []byte) bool {
	return strings.Contains(path, "/log/") && len(body) == fenceBytes
}

// fenceBytes is the size of a sealed record of one byte.
const fenceBytes = 41

func (k *knowledge) takesOver(machine string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writer = machine
}

// isReplaced reports whether another machine may have gone on where this one was: it slept, or
// one that slept took over the log after it.
func (h *history) isReplaced() bool {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	return h.world.Slept() || h.bucket != nil && h.known.writer != fmt.Sprint(h.lives)
}

// pauseOnS3 is the time between two machines. If they follow each other with rising terms, the
// next one starts when the last one has long been silent.
func (h *history) pauseOnS3() {
	pause := h.pauseOf(time.Second, objects.LockExpires, 10*time.Minute, 30*time.Hour)
	if h.plan.terms {
		pause = max(pause, lostAfter)
	}
	time.Sleep(pause)
}

// lostAfter is how long a machine is silent before the next one is started. After a third of
// it, the process is told to end.
const lostAfter = 20 * time.Minute

var errCutOff = errors.New("the machine is believed dead")

// maxRequests is more than any machine needs of the store, even if it looks for an hour whether its service is up
// again, and each intent makes files.
const maxRequests = 10_000

// machine is the next machine, which knows nothing.
func (h *history) machine() *history {
	h.lives++
	return &history{
		world: h.world.Another(h.lives), plan: h.plan, dir: filepath.Join(h.dir, fmt.Sprint("machine-", h.lives)), bucket: h.bucket, service: h.service,
		scope: h.scope, lives: h.lives, known: h.known, uses: map[string]int{}, open: map[string]bool{},
	}
}

// run runs a process on the machine.
func (h *history) run(ctx context.Context, last int, process func(ctx context.Context)) {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	process(h.world.Begin(ctx, last))
	if n := h.world.Steps(); n > maxRequests {
		h.wrongly("%d requests to the store", n)
	}
	if n := h.bucket.Careless(); n > 0 {
		h.wrongly("%d objects are written without a condition", n)
	}
}

// openOnS3 opens the state on S3 as a run does, or as who looks.
func (h *history) openOnS3(ctx context.Context, look bool) (opened, error) {
	h.known.takesOver(fmt.Sprint(h.lives))
	h.began = time.Now()
	state, err := h.stateOnS3(ctx)
	if err != nil {
		return opened{}, err
	}
	o := h.stored()
	o.Look, o.LeaveBefore, o.Segments = look, state.LeaveBefore, h.plan.sealSegments
	stores := answers.NewStores(state, o)
	s, err := stores.Of(ctx, h.scope.Service)
	if err != nil {
		return opened{}, err
	}
	end := func() error {
		err := stores.Close()
		if err == nil && !look {
			err = state.ForgetMissed(ctx)
		}
		return err
	}
	return opened{s, end, s.DelayWrites}, nil
}

// stateOnS3 is the state as the machine reaches it.
func (h *history) stateOnS3(ctx context.Context) (*objectstate.State, error) {
	copied := filepath.Join(h.dir, "copy")
	if err := os.MkdirAll(copied, 0o700); err != nil {
		return nil, err
	}
	waits := 0
	store := objects.New(ctx, objects.Options{Endpoint: "http://store.example", PathStyle: true, Machine: &objects.Machine{
		Host: fmt.Sprint("machine-", h.lives), HTTP: h.bucket.From(h.world),
		Random: func() float64 {
			waits++
			return float64(h.world.Below(1000, "wait", h.lives, waits)) / 1000
		},
	}})
	state, err := objectstate.Open(store, "s3://leads/state/")
	if err != nil {
		return nil, err
	}
	state.Scratch, state.Waits = copied, true
	if h.plan.terms {
		state.HeldBy(objectstate.Turn{Holder: objects.Holder{Name: "job", Term: int64(h.lives), LostAfter: lostAfter}, Confirmed: h.world.LastAwake})
	}
	return state, nil
}

// isExpectedOnS3 reports whether the store or another machine explains an error.
func (h *history) isExpectedOnS3(what string, err error) bool {
	_, refused := errors.AsType[*objects.RefusedError](err)
	return errors.Is(err, objects.ErrUnavailable) && (h.world.Faults() > 0 || h.world.Slept()) ||
		(errors.Is(err, objects.ErrLockLost) || errors.Is(err, errCutOff) || errors.Is(err, context.Canceled)) && h.isReplaced() ||
		what == "open" && (errors.Is(err, filelock.ErrLocked) || !refused && (h.bucket.Stale > 0 || h.world.Slept())) // it asks to try again
}
