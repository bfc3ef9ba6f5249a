package runcmd

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// TestCheckNames is about a state with answers of http://old.example and of
// http://127.0.0.1:8080, and with an open call of the first.
func TestCheckNames(t *testing.T) {
	state := wire.State{Folder: t.TempDir()}
	store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(state.Folder, wire.AnswersFolder)), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range []answers.Scope{
		{Service: "http://old.example", Operation: resolution.Enrichment}, {Service: "http://old.example", Operation: resolution.Enrichment},
		{Service: "http://127.0.0.1:8080", Operation: resolution.Enrichment}, {Service: "http://third.example", Operation: resolution.IPToCompany},
	} {
		q := answers.Question{Scope: of, Key: strings.Repeat("k", i+1)}
		a := answers.Answer{Run: "r", Outcome: answers.NoMatch, Status: 200, Received: time.Now()}
		_, err := store.Intent(t.Context(), q, answers.Send{Run: a.Run})
		if err == nil && i != 1 { // the second stays open
			err = store.Put(t.Context(), q, a)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	const both = "1 answer and 1 open call of http://old.example, 1 answer of http://127.0.0.1:8080"
	for _, f := range []struct {
		name, op     string
		service      resolverSettings
		again        bool
		refused, log string // parts of
	}{
		{"https", "enrichment", resolverSettings{address: "https://old.example"}, false, "1 answer and 1 open call of enrichment, stored under the name http://old.example, would not be used", ""},
		{"localhost", "enrichment", resolverSettings{address: "http://localhost:8080"}, false, "use them with --service-name http://127.0.0.1:8080, or buy them again with --buy-again", ""},
		{"bought again", "enrichment", resolverSettings{address: "https://old.example"}, true, "", "level=INFO"},
		{"named", "enrichment", resolverSettings{address: "http://localhost:8080", stored: "https://old.example"}, false, "", both},
		{"another", "enrichment", resolverSettings{address: "http://127.0.0.1:9"}, false, "", `level=WARN msg="answers of enrichment are stored under other names of services; this run does not use them, and what it needs of them is bought again" service=http://127.0.0.1:9 stored="` + both},
		{"another port", "enrichment", resolverSettings{address: "http://localhost:8081"}, false, "", both},
		{"the same name", "enrichment", resolverSettings{address: "http://old.example/"}, false, "", `stored="1 answer of http://127.0.0.1:8080"`},
		{"the same name and alike", "ip_to_company", resolverSettings{address: "http://third.example/"}, false, "", ""},
		{"another operation", "network_to_hem", resolverSettings{address: "https://old.example"}, false, "", ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			var log bytes.Buffer
			f.service.name = serviceResolver
			of := answers.Scope{Service: f.service.storedName(), Operation: resolution.Operation(f.op)}
			err := (&service{resolverSettings: &f.service, job: &remoteFlags{buyAgain: f.again}}).checkNames(t.Context(), state, of, slog.New(slog.NewTextHandler(&log, nil)))
			if f.refused == "" {
				if err != nil || !strings.Contains(log.String(), f.log) || f.log == "" && log.Len() > 0 || strings.Count(log.String(), "\n") > 1 {
					t.Errorf("said %q, %v, want %q", log.String(), err, f.log)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), f.refused) || cli.ExitCode(err) != cli.ExitUsage || log.Len() > 0 {
				t.Errorf("%v, log %q, want %q", err, log.String(), f.refused)
			}
		})
	}
	if err := (&service{resolverSettings: &resolverSettings{name: serviceResolver, address: "http://new.example"}, job: &remoteFlags{}}).checkNames(t.Context(), wire.State{Folder: t.TempDir()}, answers.Scope{}, slog.Default()); err != nil {
		t.Errorf("an empty state: %v", err)
	}
}
