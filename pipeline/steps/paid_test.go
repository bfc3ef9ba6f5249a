package steps

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/exchange"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// paid is a run that asks a service, on machines that share a store.
type paid struct {
	t       *testing.T
	dir     string // of the bucket
	store   *objects.Store
	proxy   *s3test.Proxy
	service *badservice.Service
	url     string
	input   string
	perPart int
	change  func(*purchase.Remote)
	asking  func(*Run) error // in place of Ask, if not nil
}

const paidOut = "s3://leads/out/"

func newPaid(t *testing.T, list string, perPart int, o badservice.Options) *paid {
	t.Helper()
	server := s3test.Start(t, "leads")
	s3test.Setenv(t)
	proxy := s3test.NewProxy(t, server)
	p := &paid{
		t: t, proxy: proxy, dir: filepath.Join(server.Dir, "leads"), perPart: perPart, input: filepath.Join(t.TempDir(), "list.csv"), service: badservice.New(o),
		store: objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, GiveUpAfter: 20 * time.Second}),
	}
	var err error
	if p.url, err = p.service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.service.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(p.input, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// visits is a list of addresses: some come again in other parts, some are not
// public, some are no address, and some lines are malformed.
func visits(rows int) string {
	var b strings.Builder
	b.WriteString("id,ip,note\n")
	for i := range rows {
		ip := fmt.Sprintf("192.31.%d.%d", 196+i%2, i%199)
		switch i % 17 {
		case 3:
			ip = "10.0.0.1"
		case 7:
			ip = "nowhere"
		case 11:
			b.WriteString("torn\n")
		}
		fmt.Fprintf(&b, "%d,%s,\"note, %d\"\n", i, ip, i*i)
	}
	return b.String()
}

func (p *paid) state() *objectstate.State {
	p.t.Helper()
	state, err := objectstate.Open(p.store, "s3://leads/state/")
	if err != nil {
		p.t.Fatal(err)
	}
	return state
}

// open opens the run as the command does, on a machine of its own.
func (p *paid) open(out string, o sinks.Options) *pipeline.Run {
	t := p.t
	t.Helper()
	input, output := openEnds(t, []string{p.input}, sources.Options{BatchRows: 7}, out, o)
	j := job.Default(resolution.IPToCompany)
	j.RowsPerPart = p.perPart
	lists := suppression.NewBuilder(suppression.Rules{})
	if err := lists.Add("192.31.196.4"); err != nil {
		t.Fatal(err)
	}
	return &pipeline.Run{
		Job: j, Input: input, Output: output, Answers: "service " + p.url, StateDir: t.TempDir(), Workers: 2, Program: "leadetl test",
		Suppression: lists.Set(), Log: slog.New(slog.DiscardHandler), Progress: &stats.Progress{}, Remote: p.remote(),
	}
}

func (p *paid) remote() *purchase.Remote {
	o := client.DefaultOptions()
	o.BaseURL, o.Key = p.url, secret.New("test")
	service, err := client.New(o)
	if err != nil {
		p.t.Fatal(err)
	}
	options := pace.DefaultOptions()
	options.GiveUp = 10 * time.Second
	r := &purchase.Remote{
		Service: service, Read: client.Read, Name: p.url, Concurrency: options.Concurrency, Budget: purchase.NoBudget, Pace: pace.New(options),
		Price: purchase.Prices[resolution.IPToCompany], Patience: time.Minute, Counters: &stats.CallCounters{},
	}
	r.Counters.Paced(r.Pace.Snapshot)
	if p.change != nil {
		p.change(r)
	}
	return r
}

// join is another machine.
func (p *paid) join() *Run {
	p.t.Helper()
	state := p.state()
	run := p.open(paidOut, sinks.Options{Objects: p.store, StateDir: p.t.TempDir(), Holder: Holder(state, paidOut), Share: true})
	r, err := OpenSized(p.t.Context(), run, state, 2000)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// lose removes objects of the run, as if the process had been killed before it
// wrote them.
func (p *paid) lose(r *Run, names ...string) {
	p.t.Helper()
	for _, name := range names {
		at := r.at(name)
		if err := p.store.Remove(p.t.Context(), at); err != nil {
			p.t.Fatal(err)
		}
	}
}

// divided surveys and divides.
func (p *paid) divided() Division {
	p.t.Helper()
	r := p.join()
	if err := r.Survey(p.t.Context(), 0); err != nil {
		p.t.Fatal(err)
	}
	d, err := r.Divide(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// twice takes a step on two machines, loses objects that it wrote, and takes it
// once more on another.
func (p *paid) twice(what string, do func(r *Run) error, lost ...string) {
	p.t.Helper()
	for i := range 3 {
		r := p.join()
		if i == 2 {
			p.lose(r, lost...)
		}
		if err := do(r); err != nil {
			p.t.Fatalf("%s, attempt %d: %v", what, i, err)
		}
	}
}

// requireSame compares the dataset with that of one machine, offline, from a copy of
// the answers.
func (p *paid) requireSame(parts int) {
	t, ctx := p.t, p.t.Context()
	t.Helper()
	store, err := answers.Open(filepath.Join(t.TempDir(), "answers"), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	scope := answers.Scope{Service: p.url, Operation: resolution.IPToCompany}
	calls, err := p.state().OpenCalls(ctx, scope)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Take(ctx, scope, p.state().Sorted(ctx, scope), calls); err != nil {
		t.Fatal(err)
	}
	one := t.TempDir()
	run := p.open(one, sinks.Options{})
	run.Remote.Answers, run.Remote.Offline = store, true
	if _, err := run.Do(ctx); err != nil {
		t.Fatal(err)
	}
	got, want := dataset(t, filepath.Join(p.dir, "out")), dataset(t, one)
	if !maps.Equal(got, want) || len(got) < parts {
		t.Errorf("%v differs from that of one machine, offline, %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// TestPaidSteps takes every step on two machines, and once more after a part of
// what it wrote was lost. The parts are those of an offline run on one machine,
// each key is billed once, and suppressed people are not asked about.
func TestPaidSteps(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Matched, o.Refused = 0.6, 0.1
	p := newPaid(t, visits(300), 100, o)
	ctx := t.Context()
	d := p.divided()
	if d.Parts != 3 || len(d.Windows) < 3 || d.Waves() != 1 {
		t.Fatalf("%+v", d)
	}
	early := p.join()
	if _, err := early.Lots(ctx, 0); !errors.Is(err, ErrNotReady) {
		t.Errorf("lots before the keys: %v", err)
	}
	var spread Spread
	for window, w := range d.Windows {
		p.twice("spread", func(r *Run) error {
			s, err := r.Spread(ctx, window)
			if err == nil && s.Parts != w.Parts {
				return fmt.Errorf("%+v", s)
			}
			spread = s
			return err
		}, spreadName(w.First), keysName(w.First))
	}
	if spread.Rows == 0 || spread.Keys == 0 || spread.Asked < spread.Keys {
		t.Errorf("the last window: %+v", spread)
	}
	lots, err := early.Lots(ctx, 0)
	if err != nil || lots != 1 {
		t.Fatalf("%d lots, %v", lots, err)
	}
	if err := early.Share(ctx, 0, 0); !errors.Is(err, ErrNotReady) {
		t.Errorf("shared before the answers: %v", err)
	}
	if _, err := early.Build(ctx, 0); !errors.Is(err, ErrNotReady) {
		t.Errorf("built before the answers: %v", err)
	}
	p.twice("gather", func(r *Run) error {
		g, err := r.Gather(ctx, 0, 0)
		if err == nil && (g.Keys == 0 || g.Ask != g.Keys) {
			return fmt.Errorf("%+v", g)
		}
		return err
	}, lotName(0, 0))
	p.twice("ask", func(r *Run) error {
		_, err := r.Ask(ctx, 0, nil)
		return err
	}, askedName(0))
	p.twice("share", func(r *Run) error { return r.Share(ctx, 0, 0) }, slicesName(0, 0))
	for part := range d.Parts {
		p.twice("build", func(r *Run) error {
			done, err := r.Build(ctx, part)
			if err == nil && done.Totals.Rows != 100 {
				return fmt.Errorf("%+v", done)
			}
			return err
		}, partName(part))
	}
	p.requireSame(3)
	for key, times := range p.service.BilledKeys() {
		if times != 1 || key == "192.31.196.4" || strings.HasPrefix(key, "10.") {
			t.Errorf("%s is billed %d times", key, times)
		}
	}
	result, err := p.join().Finish(ctx)
	if err != nil || result.Totals.Suppressed == 0 || result.Totals.Failed == 0 || result.Totals.Malformed == 0 || result.Totals.Matched == 0 {
		t.Errorf("%+v, %v", result, err)
	}
	if left, err := early.folder.List(ctx, ""); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestPaidStepsReuse: a wave whose answers are stored makes no call, and what is too
// old is asked again.
func TestPaidStepsReuse(t *testing.T) {
	p := newPaid(t, visits(90), 30, badservice.DefaultOptions())
	p.all()
	billed := p.service.BilledKeys()
	again := func() {
		t.Helper()
		p.removeOutput()
		p.all()
		p.requireSame(3)
	}
	again()
	if now := p.service.BilledKeys(); !maps.Equal(now, billed) {
		t.Error("stored answers are bought again")
	}
	p.change = func(r *purchase.Remote) { r.RefreshNoMatch = time.Millisecond }
	time.Sleep(time.Second) // a run is begun at a whole second
	seen := p.service.Seen()
	again()
	if n := p.service.Seen() - seen; n == 0 || n >= len(billed) {
		t.Errorf("%d of %d keys are asked again, want those without a match", n, len(billed))
	}
}

// TestPaidStepsFaults: one in thirty requests to S3 fails, also after it was done.
func TestPaidStepsFaults(t *testing.T) {
	p := newPaid(t, visits(90), 30, badservice.DefaultOptions())
	n := 0
	kinds := []s3test.Fault{{Kind: s3test.Lose}, {Kind: s3test.Reset}, {Kind: s3test.Cut}, {Kind: s3test.Refuse, Status: 503, Code: "SlowDown"}}
	p.proxy.Do(func(*http.Request) s3test.Fault {
		if n++; n%30 == 0 {
			return kinds[n/30%len(kinds)]
		}
		return s3test.Fault{}
	})
	p.all()
	p.proxy.Do(nil)
	if counts := p.proxy.Counts(); counts[s3test.Lose] == 0 || counts[s3test.Refuse] == 0 {
		t.Errorf("%v", counts)
	}
	p.requireSame(3)
	for key, times := range p.service.BilledKeys() {
		if times != 1 {
			t.Errorf("%s is billed %d times", key, times)
		}
	}
}

// TestPaidStepsWaves: keys of two waves are asked once.
func TestPaidStepsWaves(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes 65 parts")
	}
	p := newPaid(t, visits(2*PartsPerWave+2), 2, badservice.DefaultOptions())
	if d, _ := p.all(); d.Waves() != 2 {
		t.Fatalf("%d waves", d.Waves())
	}
	p.requireSame(PartsPerWave + 1)
	for key, times := range p.service.BilledKeys() {
		if times != 1 {
			t.Errorf("%s is billed %d times", key, times)
		}
	}
}

// all takes all steps on one machine.
func (p *paid) all() (Division, *pipeline.Result) {
	t, ctx := p.t, p.t.Context()
	t.Helper()
	d := p.divided()
	r := p.join()
	fine := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for window := range d.Windows {
		_, err := r.Spread(ctx, window)
		fine(err)
	}
	for wave := range d.Waves() {
		lots, err := r.Lots(ctx, wave)
		fine(err)
		for lot := range lots {
			_, err := r.Gather(ctx, wave, lot)
			fine(err)
		}
		if p.asking != nil {
			fine(p.asking(r))
		} else {
			_, err = r.Ask(ctx, wave, nil)
			fine(err)
		}
		for lot := range lots {
			fine(r.Share(ctx, wave, lot))
		}
		first := wave * PartsPerWave
		fine(each(ctx, min(PartsPerWave, d.Parts-first), 8, func(ctx context.Context, i int) error {
			_, err := r.Build(ctx, first+i)
			return err
		}))
	}
	result, err := r.Finish(ctx)
	fine(err)
	return d, result
}

// removeOutput removes the dataset.
func (p *paid) removeOutput() {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.dir, "out")); err != nil {
		p.t.Fatal(err)
	}
}

// TestPaidStepsWrongSlices: a part whose keys are not in its slices is not made.
func TestPaidStepsWrongSlices(t *testing.T) {
	p := newPaid(t, visits(60), 20, badservice.DefaultOptions())
	ctx := t.Context()
	d := p.divided()
	r := p.join()
	for window := range d.Windows {
		if _, err := r.Spread(ctx, window); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Gather(ctx, 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ask(ctx, 0, nil); err != nil {
		t.Fatal(err)
	}
	keys, err := r.lot(ctx, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.folder.Put(ctx, r.Name(lotName(0, 0)), exchange.EncodeLot(keys[1:])); err != nil {
		t.Fatal(err)
	}
	if err := r.Share(ctx, 0, 0); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for part := range d.Parts {
		if _, err := r.Build(ctx, part); errors.Is(err, exchange.ErrNotInSlices) {
			failed++
		} else if err != nil {
			t.Error(err)
		}
	}
	if failed == 0 {
		t.Error("a key without an answer is not noticed")
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := r.Build(ctx, 0); err == nil {
		t.Error("built after the end")
	}
}
