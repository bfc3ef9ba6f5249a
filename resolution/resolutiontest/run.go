// Package resolutiontest holds the facts every resolution.Resolver agrees on:
// one suite, run over the engine, a client against a service, a cache.
//
// The one thing to know before using it: the resolver under test answers from
// the sample directory (Sample), which the caller imports.
package resolutiontest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// Sample is the folder of the sample directory's sources: people.csv,
// companies.csv, ip-ranges.csv, searches.csv and visits.csv.
func Sample(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "testdata", "directory")
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// Run checks a resolver, which answers from the sample directory, against the facts
// and against the contract of resolution.Resolver.
func Run(t *testing.T, of resolution.Resolver) {
	r := resolution.NewSingle(of)
	t.Run("facts", func(t *testing.T) {
		for _, f := range facts {
			t.Run(f.name, func(t *testing.T) {
				got, err := r.Resolve(t.Context(), f.ask)
				if err != nil {
					t.Fatalf("%+v: %v", f.ask, err)
				}
				f.check(t, got)
			})
		}
	})
	t.Run("the same again", func(t *testing.T) { repeats(t, r) })
	t.Run("from many goroutines", func(t *testing.T) { concurrent(t, r) })
	t.Run("a cancelled context", func(t *testing.T) { cancelled(t, r) })
	t.Run("an invalid request", func(t *testing.T) { invalid(t, r) })
}

func (f fact) check(t *testing.T, got resolution.Answer) {
	t.Helper()
	if f.want == nil {
		if got.Lead != nil || got.Reason == "" {
			t.Fatalf("%+v: lead %+v, reason %q; want no lead and a reason", f.ask, got.Lead, got.Reason)
		}
		return
	}
	if got.Lead == nil || got.Reason != "" {
		t.Fatalf("%+v: lead %v, reason %q; want a lead and no reason", f.ask, got.Lead, got.Reason)
	}
	lead := *got.Lead
	lead.PhoneRaw = "" // services do not have it
	if !reflect.DeepEqual(&lead, f.want) {
		t.Fatalf("%+v:\n got %s\nwant %s", f.ask, text(lead), text(*f.want))
	}
}

func repeats(t *testing.T, r *resolution.Single) {
	for _, f := range facts {
		first, err := r.Resolve(t.Context(), f.ask)
		if err != nil {
			t.Fatal(err)
		}
		second, err := r.Resolve(t.Context(), f.ask)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%+v: asked twice:\n%+v\n%+v", f.ask, first, second)
		}
	}
}

func concurrent(t *testing.T, r *resolution.Single) {
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range facts {
				f := facts[(i+g*7)%len(facts)]
				got, err := r.Resolve(t.Context(), f.ask)
				if err != nil {
					t.Errorf("%+v: %v", f.ask, err)
				} else if got.Matched() != (f.want != nil) {
					t.Errorf("%+v: matched %v", f.ask, got.Matched())
				}
			}
		})
	}
	wg.Wait()
}

func cancelled(t *testing.T, r *resolution.Single) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range facts {
		if _, err := r.Resolve(ctx, f.ask); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v: error %v, want context.Canceled", f.ask, err)
		}
	}
}

func invalid(t *testing.T, r *resolution.Single) {
	const secret = "not;a@key@secret.example"
	for _, ask := range []resolution.Request{
		{Operation: resolution.EmailToHEM, Key: secret},
		{Operation: resolution.IPToCompany, Key: secret},
		{Operation: resolution.Deanonymization, Key: secret},
		{Operation: resolution.IPToCompany, Key: ""},
		{Operation: resolution.Enrichment, Key: ""},
		{Operation: resolution.KeywordToLead, Key: secret},
		{Operation: "no_such_operation", Key: secret},
	} {
		got, err := r.Resolve(t.Context(), ask)
		if !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%s: answer %+v, error %v; want ErrInvalid", ask.Operation, got, err)
		} else if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "secret.example") {
			t.Errorf("%s: the error repeats the identifier", ask.Operation)
		}
	}
}
