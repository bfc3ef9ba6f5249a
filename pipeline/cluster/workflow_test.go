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

	"github.com/leadetl/leadetl/sinks"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
)

// small is a small run: it counts how often each step was done, in order.
type small struct {
	files, windows int
	// fail returns the error of a step, which has the name of the step and its
	// number.
	fail func(step string, n, attempt int) error
	// beats are sent by Buy before it ends.
	beats []Status

	mu     sync.Mutex
	did    map[string]int
	worked map[string]int // as counted for the report
	order  []string
	terms  []int64 // of the calls of Buy
}

// opened is the run as a worker opens it.
func (s *small) opened() *Opened {
	return &Opened{Steps: s, Close: func() error { return nil }, Worked: func(_ context.Context, step string, _ time.Duration) error {
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

func (s *small) Files() int                               { return s.files }
func (s *small) Survey(_ context.Context, file int) error { return s.step("survey", file) }
func (s *small) Divide(context.Context) (Division, error) {
	d := Division{Rows: 100, Windows: s.windows, Parts: s.windows}
	return d, s.step("divide", 0)
}
func (s *small) Finish(context.Context) (Counts, error) {
	return Counts{Parts: int64(s.windows), Totals: sinks.Totals{Rows: 100, Matched: 60, NoMatch: 40}}, s.step("finish", 0)
}
func (s *small) Make(_ context.Context, window int) (Counts, error) {
	return Counts{Parts: 1, Totals: sinks.Totals{Rows: 10}}, s.step("make", window)
}

// Buy does a run that asks a service.
func (s *small) Buy(_ context.Context, _ Job, turn Turn) (Status, error) {
	s.mu.Lock()
	s.terms = append(s.terms, turn.Term)
	s.mu.Unlock()
	for _, b := range s.beats {
		turn.Tell(b)
	}
	return Status{Rows: 100, Made: Counts{Totals: sinks.Totals{Rows: 100, Matched: 60}}, Calls: Calls{Asked: 7, Closed: 7, Credits: 14}}, s.step("buy", 0)
}

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
	doing := &activities{opened: runs, worker: &Worker{
		Buy: s.Buy, Log: slog.New(slog.DiscardHandler),
		Classify: func(err error) Fault {
			return Fault{Code: 2, Final: strings.Contains(err.Error(), "final"), Text: err.Error()}
		},
		Tell: func(_ Job, text string) (string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			name := fmt.Sprintf("failures/%d.txt", len(texts))
			texts[name] = text
			return name, nil
		},
	}}
	register(env, doing)
	registerCalls(env, doing)
	if before != nil {
		before(env)
	}
	env.ExecuteWorkflow(runWorkflow, Job{ID: "ab", State: "s3://state/", Settings: "settings-1", Service: service, LostAfter: 30 * time.Second})
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

// TestPaidRun is done by one worker at a time, each with a higher term, and by no
// other step.
func TestPaidRun(t *testing.T) {
	s := &small{fail: func(step string, _, attempt int) error { return failUntil(step == "buy", attempt, 4, errSmall) }}
	env, _ := s.does(t, "5e41ce00", nil)
	got := result(t, env)
	if got.Calls.Credits != 14 || got.Calls.Closed != 7 || got.Made.Rows != 100 || got.Stage != buyStage {
		t.Errorf("the result is %+v", got)
	}
	if want := []string{"buy"}; !slices.Equal(s.order, want) || !slices.Equal(s.terms, []int64{1, 2, 3, 4}) {
		t.Errorf("order %v, want %v, with the terms %v", s.order, want, s.terms)
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
		{"buying passes", func(step string, _, attempt int) error { return failUntil(step == "buy", attempt, 4, errSmall) }, "buy 0", 4, false},
		{"buying is idle", func(step string, _, _ int) error { return failUntil(step == "buy", 0, 1, errSmall) }, "buy 0", idleAttempts, true},
		{"buying is final", func(step string, _, _ int) error { return failUntil(step == "buy", 0, 1, final) }, "buy 0", 1, true},
	} {
		s := &small{files: 1, windows: 2, fail: c.fail}
		service := ""
		if strings.HasPrefix(c.name, "buying") {
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
	s := &small{files: 1, windows: 3}
	env, _ := s.does(t, "", nil)
	value, err := env.QueryWorkflow(statusQuery)
	var got Status
	if err := errors.Join(err, value.Get(&got)); err != nil || got.Stage != "finish" || got.Rows != 100 {
		t.Errorf("got %+v, %v", got, err)
	}
}
