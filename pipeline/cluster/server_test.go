package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/leadetl/leadetl/internal/testkit/temporaltest"
)

var update = flag.Bool("update", false, "write the recorded histories")

// TestReplay does the workflows again on histories that a server has recorded.
// A change of workflow code that cannot go on with them needs a new protocol.
func TestReplay(t *testing.T) {
	histories, err := filepath.Glob("testdata/history/*.json")
	if err != nil || len(histories) == 0 {
		t.Fatalf("no histories: %v", err)
	}
	for _, name := range histories {
		if !strings.HasPrefix(filepath.Base(name), fmt.Sprintf("p%d-", protocol)) {
			t.Errorf("%s is of another protocol: record histories with -update, and delete the old ones", name)
			continue
		}
		replayer := worker.NewWorkflowReplayer()
		replayer.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: runWorkflow})
		if err := replayer.ReplayWorkflowHistoryFromJSONFile(nil, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// onServer runs a worker with these steps on a server, and a run. It returns the
// result of the run.
func (s *small) onServer(t *testing.T, server *temporaltest.Server, job Job, during func(*Run)) (Status, error) {
	t.Helper()
	s.did, s.worked = map[string]int{}, map[string]int{}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
	at, err := ParseAddress(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	engine, _, err := Dial(t.Context(), Connection{Address: at, Identity: "tester", Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	stop := s.work(t, engine, job.Service)
	defer stop()
	r, err := Submit(t.Context(), engine, job)
	if err != nil {
		t.Fatal(err)
	}
	if during != nil {
		during(r)
	}
	return r.Wait(t.Context(), func(name string) (string, error) { return "text of " + name, nil })
}

// work starts a worker.
func (s *small) work(t *testing.T, engine client.Client, service string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	w := &Worker{
		Open: func(context.Context, Job, bool) (*Opened, error) {
			return s.opened(), nil
		},
		Buy:      s.Buy,
		Classify: func(err error) Fault { return Fault{Code: 2, Final: !errors.Is(err, errPassing), Text: "canary"} },
		Tell:     func(Job, string) (string, error) { return "failures/1.txt", nil },
		Slots:    2, CallSlots: 2, Service: service, Log: slog.New(slog.DiscardHandler),
	}
	go func() { done <- w.Run(ctx, engine) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

var errPassing = errors.New("canary that passes")

// TestServer does whole runs on a real server.
func TestServer(t *testing.T) {
	server := temporaltest.Start(t)
	job := Job{State: "s3://state/", Settings: "settings-1", Submission: "first", LostAfter: 5 * time.Second}
	for _, c := range []struct {
		name    string
		steps   *small
		service string
		code    int // exit code of the failure; 0 is none
	}{
		{"free", &small{files: 2, windows: 7}, "", 0},
		{"paid", &small{beats: []Status{{Calls: Calls{Closed: 1}}}, fail: func(_ string, _, attempt int) error { return failUntil(true, attempt, 2, errPassing) }}, "5e41ce00", 0},
		{"fails", &small{files: 1, windows: 2, fail: func(step string, _, _ int) error { return failUntil(step == "make", 0, 1, errSmall) }}, "", 2},
	} {
		job.ID, job.Service = "ab"+c.name, c.service
		got, err := c.steps.onServer(t, server, job, func(r *Run) {
			again, err := Submit(t.Context(), r.engine, r.job)
			if err != nil || !again.Attached && again.flow.GetRunID() == r.flow.GetRunID() {
				t.Errorf("%s: the same command: %v", c.name, err)
			}
		})
		switch failure, ok := errors.AsType[*Failure](err); {
		case c.code == 0 && (err != nil || got.Made.Rows != 100):
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		case c.code != 0 && (!ok || failure.Code != c.code || failure.Text != "text of failures/1.txt"):
			t.Errorf("%s: got %v", c.name, err)
		}
		history := server.History(t, workflowID(job.ID))
		if strings.Contains(string(history), "canary") {
			t.Errorf("%s: the history has the text of an error", c.name)
		}
		if *update {
			record(t, fmt.Sprintf("testdata/history/p%d-%s.json", protocol, c.name), history)
		}
	}
	t.Run("cancel", func(t *testing.T) { cancelled(t, server, job) })
}

// record writes a history on one line, without the name of this machine.
func record(t *testing.T, name string, history []byte) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, bytes.ReplaceAll(history, []byte(host), []byte("host"))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, append(line.Bytes(), '\n'), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// cancelled cancels a run in the middle of a step.
func cancelled(t *testing.T, server *temporaltest.Server, job Job) {
	job.ID, job.Service = "cancelled", ""
	making := make(chan struct{})
	s := &small{files: 1, windows: 1, fail: func(step string, _, _ int) error {
		if step == "make" {
			close(making)
			time.Sleep(time.Second)
		}
		return nil
	}}
	_, err := s.onServer(t, server, job, func(r *Run) {
		<-making
		if status, err := r.Status(t.Context()); err != nil || status.Stage != "make" {
			t.Errorf("status %+v, %v", status, err)
		}
		if all, _, err := r.Workers(t.Context()); err != nil || all != 1 {
			t.Errorf("%d workers, %v", all, err)
		}
		other := r.job
		other.Settings = "settings-2"
		if _, err := Submit(t.Context(), r.engine, other); !errors.Is(err, ErrOtherRun) {
			t.Errorf("other settings: %v", err)
		}
		if err := r.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if !errors.Is(err, context.Canceled) || s.did["finish 0"] != 0 {
		t.Errorf("got %v", err)
	}
}
