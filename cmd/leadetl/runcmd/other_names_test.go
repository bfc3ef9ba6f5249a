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
		flags        remoteFlags
		refused, log string // parts of
	}{
		{"https", "enrichment", remoteFlags{resolver: "https://old.example"}, "1 answer and 1 open call of enrichment, stored under the name http://old.example, would not be used", ""},
		{"localhost", "enrichment", remoteFlags{resolver: "http://localhost:8080"}, "use them with --service-name http://127.0.0.1:8080, or buy them again with --buy-again", ""},
		{"bought again", "enrichment", remoteFlags{resolver: "https://old.example", buyAgain: true}, "", "level=INFO"},
		{"named", "enrichment", remoteFlags{resolver: "http://localhost:8080", serviceName: "https://old.example"}, "", both},
		{"another", "enrichment", remoteFlags{resolver: "http://127.0.0.1:9"}, "", `level=WARN msg="answers of enrichment are stored under other names of services; this run does not use them, and what it needs of them is bought again" service=http://127.0.0.1:9 stored="` + both},
		{"another port", "enrichment", remoteFlags{resolver: "http://localhost:8081"}, "", both},
		{"the same name", "enrichment", remoteFlags{resolver: "http://old.example/"}, "", `stored="1 answer of http://127.0.0.1:8080"`},
		{"the same name and alike", "ip_to_company", remoteFlags{resolver: "http://third.example/"}, "", ""},
		{"another operation", "network_to_hem", remoteFlags{resolver: "https://old.example"}, "", ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			var log bytes.Buffer
			of := answers.Scope{Service: f.flags.name(), Operation: resolution.Operation(f.op)}
			err := f.flags.checkNames(t.Context(), state, of, slog.New(slog.NewTextHandler(&log, nil)))
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
	if err := (&remoteFlags{resolver: "http://new.example"}).checkNames(t.Context(), wire.State{Folder: t.TempDir()}, answers.Scope{}, slog.Default()); err != nil {
		t.Errorf("an empty state: %v", err)
	}
}
