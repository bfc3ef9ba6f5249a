package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
)

// small is a small run: it counts how often each step was done, in order.
type small struct {
	files, windows, lots int
	waves                []int
	// fail returns the error of a step, which has the name of the step and its
	// number.
	fail func(step string, n, attempt int) error
	// beats are sent by Ask before it ends.
	beats []Calls
	// lanes is how many lanes OpenLanes opens.
	lanes int

	mu     sync.Mutex
	did    map[string]int
	worked map[string]int // as counted for the report
	order  []string
}

// opened is the run as a worker opens it.
func (s *small) opened() *Opened {
	return &Opened{Steps: s, Free: s, Paid: s, Close: func() error { return nil }, Worked: func(_ context.Context, step string, _ time.Duration) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.worked[step]++
		return errSmall // is no reason to fail
	}}
}

var errSmall = errors.New("canary@example.com cannot be read")

func (s *small) step(name string, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s %d", name, n)
	s.did[key]++
	if len(s.order) == 0 || s.order[len(s.order)-1] != name {
		s.order = append(s.order, name)
	}
	if s.fail != nil {
		return s.fail(name, n, s.did[key])
	}
	return nil
}

// times is how often a step was done. One that was cancelled may be at work still.
func (s *small) times(step string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.did[step]
}

func (s *small) Files() int                               { return s.files }
func (s *small) Survey(_ context.Context, file int) error { return s.step("survey", file) }
func (s *small) Divide(context.Context) (Division, error) {
	d := Division{Rows: 100, Windows: s.windows, Parts: s.windows, Waves: s.waves}
	return d, s.step("divide", 0)
}
func (s *small) Finish(context.Context) (Counts, error) {
	return Counts{Rows: 100, Matched: 60, NoMatch: 40, Parts: int64(s.windows)}, s.step("finish", 0)
}
func (s *small) Make(_ context.Context, window int) (Counts, error) {
	return Counts{Parts: 1, Rows: 10}, s.step("make", window)
}
func (s *small) Spread(_ context.Context, window int) error { return s.step("spread", window) }
func (s *small) Build(_ context.Context, part int) (Counts, error) {
	return Counts{Parts: 1, Rows: 5}, s.step("build", part)
}
func (s *small) Lots(_ context.Context, wave int) (int, error) { return s.lots, s.step("lots", wave) }
func (s *small) Gather(_ context.Context, wave, lot int) error {
	return s.step("gather", wave*1000+lot)
}
func (s *small) Share(_ context.Context, wave, lot int) error {
	return s.step("share", wave*1000+lot)
}
func (s *small) Ask(_ context.Context, wave int, beat func(Calls)) (Calls, error) {
	for _, b := range s.beats {
		beat(b)
	}
	return Calls{Keys: 7, Closed: 7, Credits: 14}, s.step("ask", wave)
}

func (s *small) OpenLanes(_ context.Context, wave int) (Lanes, error) {
	return Lanes{ID: 5, Count: s.lanes, MaxCredits: 20, MaxCalls: -1, Spent: Calls{Credits: 3}}, s.step("open lanes", wave)
}
func (s *small) AskLane(_ context.Context, wave int, l Lanes, lane int, beat func(Calls)) (Calls, error) {
	if l.ID != 5 || l.Count != s.lanes || l.MaxCredits != 20 || l.MaxCalls != -1 || l.Spent.Credits != 3 {
		return Calls{}, fmt.Errorf("final: lanes %+v", l)
	}
	for _, b := range s.beats {
		beat(b)
	}
	return Calls{Keys: 2, Closed: 2, Credits: 4}, s.step("ask lane", wave*1000+lane)
}
func (s *small) JoinLanes(context.Context) error { return s.step("join", 0) }

// does runs the workflow of a run on these steps, and returns its environment
// and the texts that were stored.
func (s *small) does(t *testing.T, service string, before func(*testsuite.TestWorkflowEnvironment)) (*testsuite.TestWorkflowEnvironment, map[string]string) {
	t.Helper()
	s.did, s.worked = map[string]int{}, map[string]int{}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	texts := map[string]string{}
	runs := &openedRuns{runs: map[Job]*openedRun{}, life: t.Context(), open: func(context.Context, Job, bool) (*Opened, error) {
		return s.opened(), nil
	}}
	t.Cleanup(func() {
		if err := runs.close(); err != nil {
			t.Error(err)
		}
	})
	doing := &activities{opened: runs, log: slog.New(slog.DiscardHandler),
		classify: func(err error) Fault {
			return Fault{Code: 2, Final: strings.Contains(err.Error(), "final"), Text: err.Error()}
		},
		tell: func(_ Job, text string) (string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			name := fmt.Sprintf("failures/%d.txt", len(texts))
			texts[name] = text
			return name, nil
		},
	}
	register(env, doing)
	registerCalls(env, doing)
	if before != nil {
		before(env)
	}
	env.ExecuteWorkflow(runWorkflow, Job{ID: "ab", State: "s3://state/", Settings: "settings-1", Service: service, LostAfter: 30 * time.Second, Lanes: s.lanes})
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow did not end")
	}
	return env, texts
}

func result(t *testing.T, env *testsuite.TestWorkflowEnvironment) (s Status) {
	t.Helper()
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := env.GetWorkflowResult(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFreeRun does every file and window once, whatever their number.
func TestFreeRun(t *testing.T) {
	for _, c := range []struct{ files, windows int }{{1, 1}, {3, 7}, {2, 1203}, {0, 0}} {
		s := &small{files: c.files, windows: c.windows}
		env, _ := s.does(t, "", nil)
		got := result(t, env)
		if got.Made.Rows != 100 || got.Made.Matched != 60 || got.Rows != 100 {
			t.Errorf("%+v: the result is %+v", c, got)
		}
		if want := c.files + c.windows + 2; len(s.did) != want {
			t.Errorf("%+v: %d steps, want %d", c, len(s.did), want)
		}
		for step, times := range s.did {
			if times != 1 {
				t.Errorf("%+v: %s was done %d times", c, step, times)
			}
		}
		want := slices.DeleteFunc([]string{"survey", "divide", "make", "finish"}, func(stage string) bool {
			return stage == "survey" && c.files == 0 || stage == "make" && c.windows == 0
		})
		if !slices.Equal(s.order, want) {
			t.Errorf("%+v: order %v, want %v", c, s.order, want)
		}
	}
}

// TestActivities bounds how many activities a step is divided among.
func TestActivities(t *testing.T) {
	s := &small{files: 1, windows: 5003}
	started := 0
	env, _ := s.does(t, "", func(env *testsuite.TestWorkflowEnvironment) {
		env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
			if info.ActivityType.Name == "Make" {
				started++
			}
		})
	})
	if result(t, env); started > maxActivities || len(s.did) != 1+5003+2 {
		t.Errorf("%d activities for %d steps", started, len(s.did))
	}
}

// TestPaidRun does the waves one after the other, and each in its order.
func TestPaidRun(t *testing.T) {
	s := &small{files: 2, windows: 3, waves: []int{64, 10}, lots: 3}
	env, _ := s.does(t, "5e41ce00", nil)
	got := result(t, env)
	if got.Calls.Credits != 14 || got.Calls.Closed != 14 || got.Waves != 2 || got.Made.Rows != 100 {
		t.Errorf("the result is %+v", got)
	}
	want := strings.Fields("survey divide spread lots gather ask share build lots gather ask share build finish")
	if !slices.Equal(s.order, want) {
		t.Errorf("order %v, want %v", s.order, want)
	}
	if want := map[string]int{"open": 1, "survey": 2, "divide": 1, "spread": 3, "lots": 2, "gather": 6, "ask": 2, "share": 6, "build": 74}; !maps.Equal(s.worked, want) {
		t.Errorf("counted %v, want %v", s.worked, want)
	}
	for part := range 74 {
		if s.did[fmt.Sprintf("build %d", part)] != 1 {
			t.Errorf("part %d was built %d times", part, s.did[fmt.Sprintf("build %d", part)])
		}
	}
}

// TestLanes asks in lanes, whose callers are replaced as others, and then about the
// rest. A reason that stops the run stops all lanes, which are joined.
func TestLanes(t *testing.T) {
	final := fmt.Errorf("final: %w", errSmall)
	for _, c := range []struct {
		name  string
		fail  func(step string, n, attempt int) error
		did   map[string]int
		fails bool
	}{
		{"all end", nil, map[string]int{"open lanes 0": 1, "ask lane 0": 1, "ask lane 1": 1, "ask lane 2": 1, "ask 0": 1, "join 0": 0, "build 1": 1}, false},
		{"one is replaced", func(step string, n, attempt int) error {
			return failUntil(step == "ask lane" && n == 1, attempt, 3, errSmall)
		},
			map[string]int{"ask lane 0": 1, "ask lane 1": 3, "ask 0": 1, "join 0": 0, "build 1": 1}, false},
		{"one never ends", func(step string, n, _ int) error { return failUntil(step == "ask lane" && n == 1, 0, 1, errSmall) },
			map[string]int{"ask lane 1": idleAttempts, "ask 0": 1, "join 0": 0, "build 1": 1}, false},
		{"one is final", func(step string, n, _ int) error { return failUntil(step == "ask lane" && n == 1, 0, 1, final) },
			map[string]int{"ask lane 1": 1, "ask 0": 0, "join 0": 1, "build 1": 0}, true},
		{"none is opened", func(step string, _, _ int) error { return failUntil(step == "open lanes", 0, 1, final) },
			map[string]int{"open lanes 0": 1, "ask lane 1": 0, "ask 0": 0, "join 0": 0, "build 1": 0}, true},
	} {
		s := &small{files: 1, windows: 2, waves: []int{2}, lots: 1, lanes: 3, fail: c.fail}
		env, _ := s.does(t, "5e41ce00", nil)
		err := env.GetWorkflowError()
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
		for step, times := range c.did {
			if got := s.times(step); got != times {
				t.Errorf("%s: %s was done %d times, want %d", c.name, step, got, times)
			}
		}
		if err == nil && result(t, env).Calls.Credits != 14 {
			t.Errorf("%s: %+v", c.name, result(t, env).Calls)
		}
	}
}

// TestLanesCancelled joins the lanes of a run that is cancelled.
func TestLanesCancelled(t *testing.T) {
	s := &small{files: 1, windows: 2, waves: []int{2}, lots: 1, lanes: 2}
	var env *testsuite.TestWorkflowEnvironment
	s.fail = func(step string, n, _ int) error {
		if step == "ask lane" && n == 1 {
			env.CancelWorkflow()
			return errSmall
		}
		return nil
	}
	env, _ = s.does(t, "5e41ce00", func(e *testsuite.TestWorkflowEnvironment) { env = e })
	if err := env.GetWorkflowError(); !temporal.IsCanceledError(err) || s.times("join 0") != 1 || s.times("ask 0") != 0 {
		t.Errorf("got %v after %d joins", err, s.times("join 0"))
	}
}

// TestReach adds up what the callers in lanes say, each its own and none twice.
func TestReach(t *testing.T) {
	s := Status{Lanes: make([]Calls, 2), Before: Calls{Calls: 10, Credits: 20}}
	for _, now := range []Calls{
		{Lane: 1, Keys: 5, Closed: 3, Calls: 2, Credits: 4}, {Lane: 2, Keys: 5, Closed: 1, Credits: 1, Unknown: 1}, {Lane: 1, Keys: 5, Closed: 2}, {Lane: 9, Closed: 9}, {Lane: 2, Keys: 6, Closed: 2, Credits: 2},
	} {
		s.reach(now)
	}
	if want := (Calls{Keys: 11, Closed: 5, Calls: 12, Credits: 26}); s.Calls != want {
		t.Errorf("got %+v, want %+v", s.Calls, want)
	}
	s.reach(Calls{Keys: 12, Closed: 4})
	s.reach(Calls{Keys: 12, Closed: 7})
	if s.Calls.Closed != 7 {
		t.Errorf("after the lanes got %+v", s.Calls)
	}
}

// TestRetries says which failures are tried again, and that no text of an error
// is in what the server gets.
func TestRetries(t *testing.T) {
	final := fmt.Errorf("final: %w", errSmall)
	for _, c := range []struct {
		name  string
		fail  func(step string, n, attempt int) error
		step  string
		times int
		fails bool
	}{
		{"passes", func(step string, n, attempt int) error {
			return failUntil(step == "make" && n == 1, attempt, 4, errSmall)
		}, "make 1", 4, false},
		{"never passes", func(step string, n, _ int) error { return failUntil(step == "make" && n == 1, 0, 1, errSmall) }, "make 1", stepAttempts, true},
		{"final", func(step string, n, _ int) error { return failUntil(step == "make" && n == 1, 0, 1, final) }, "make 1", 1, true},
		{"ask passes", func(step string, _, attempt int) error { return failUntil(step == "ask", attempt, 4, errSmall) }, "ask 0", 4, false},
		{"ask is idle", func(step string, _, _ int) error { return failUntil(step == "ask", 0, 1, errSmall) }, "ask 0", idleAttempts, true},
		{"ask is final", func(step string, _, _ int) error { return failUntil(step == "ask", 0, 1, final) }, "ask 0", 1, true},
	} {
		s := &small{files: 1, windows: 2, waves: []int{2}, lots: 1, fail: c.fail}
		service := ""
		if strings.HasPrefix(c.name, "ask") {
			service = "5e41ce00"
		}
		env, texts := s.does(t, service, nil)
		err := env.GetWorkflowError()
		if (err != nil) != c.fails || s.did[c.step] != c.times {
			t.Errorf("%s: %s was done %d times, want %d: %v", c.name, c.step, s.did[c.step], c.times, err)
		}
		if err == nil {
			continue
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the server is told %v", c.name, err)
		}
		told := failureOf(err, func(name string) (string, error) { return texts[name], nil })
		if failure, ok := errors.AsType[*Failure](told); !ok || failure.Code != 2 || !strings.Contains(failure.Text, "canary@example.com") {
			t.Errorf("%s: the user is told %v", c.name, told)
		}
		if s.did["finish 0"] != 0 {
			t.Errorf("%s: finished", c.name)
		}
	}
}

func failUntil(applies bool, attempt, passes int, err error) error {
	if applies && attempt < passes {
		return err
	}
	return nil
}

// TestCancel stops between steps, and finishes nothing.
func TestCancel(t *testing.T) {
	s := &small{files: 1, windows: 3}
	var env *testsuite.TestWorkflowEnvironment
	s.fail = func(step string, n, _ int) error {
		if step == "make" && n == 1 {
			env.CancelWorkflow()
		}
		return nil
	}
	env, _ = s.does(t, "", func(e *testsuite.TestWorkflowEnvironment) { env = e })
	err := env.GetWorkflowError()
	s.mu.Lock() // a step of the cancelled workflow may be at work still
	defer s.mu.Unlock()
	if !temporal.IsCanceledError(err) || !errors.Is(failureOf(err, nil), context.Canceled) || s.did["finish 0"] != 0 {
		t.Errorf("got %v after %v", err, slices.Sorted(maps.Keys(s.did)))
	}
}

// TestStatus asks a run how far it is.
func TestStatus(t *testing.T) {
	s := &small{files: 1, windows: 3, waves: []int{2}, lots: 1}
	env, _ := s.does(t, "5e41ce00", nil)
	value, err := env.QueryWorkflow(statusQuery)
	var got Status
	if err := errors.Join(err, value.Get(&got)); err != nil || got.Stage != "finish" || got.Rows != 100 || got.Waves != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}
