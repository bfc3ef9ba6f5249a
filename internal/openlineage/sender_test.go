package openlineage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/internal/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"http://marquez.example:5000":                "http://marquez.example:5000/api/v1/lineage",
		"https://marquez.example/":                   "https://marquez.example/api/v1/lineage",
		"https://c.example/team":                     "https://c.example/team/api/v1/lineage",
		"https://c.example/events/1.0/lineage":       "https://c.example/events/1.0/lineage",
		"marquez:5000":                               "",
		"ftp://marquez.example":                      "",
		"http://":                                    "",
		"http://user:pass@marquez.example":           "",
		"http://marquez.example/?key=secret-in-here": "",
	} {
		got, err := Address(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "pass") || strings.Contains(err.Error(), "secret-in-here")) {
			t.Errorf("%v repeats a secret", err)
		}
	}
}

// TestSender: events come in order and as they were when they were sent, the
// last one always, and a collector that hangs delays no run.
func TestSender(t *testing.T) {
	var mu sync.Mutex
	var heard []string
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.Header.Get("Authorization") != "Bearer the-key" {
			t.Errorf("%v, %v", err, r.Header)
		}
		mu.Lock()
		heard = append(heard, fmt.Sprint(e.Type, len(e.Run.Facets)))
		mu.Unlock()
		if e.Type == "HANG" {
			<-hang
		}
	}))
	defer server.Close()
	var log bytes.Buffer
	run := Run{ID: "00000000-0000-7000-8000-000000000000", Facets: map[string]any{}}
	event := func(state string) Event { return New(state, run, Job{"n", "j", nil}, nil, nil) }
	send := func() *Sender {
		return NewSender(server.URL, secret.New("the-key"), slog.New(slog.NewTextHandler(&log, nil)))
	}

	s := send()
	s.Send(event(Start))
	s.Send(event(Running))
	run.Facets["errorMessage"] = ErrorMessage("later")
	s.Close(event(Fail))
	if got := fmt.Sprint(heard); got != "[START0 RUNNING0 FAIL1]" || log.Len() > 0 {
		t.Errorf("%s\n%s", got, &log)
	}

	s = send()
	began := time.Now()
	for range 3 * waiting { // more than wait to be sent
		s.Send(event("HANG"))
	}
	if took := time.Since(began); took > lastWait {
		t.Errorf("sending took %s", took)
	}
	s.Close(event(Complete))
	close(hang)
	if took := time.Since(began); took < lastWait || took > 3*lastWait || strings.Count(log.String(), "cannot be sent") != 1 {
		t.Errorf("closing took %s\n%s", took, &log)
	}
}
