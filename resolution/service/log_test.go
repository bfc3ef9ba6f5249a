package service

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

// logged is a log that is read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestRequestLog: at info level one request in so many is logged, and every failure
// of the service.
func TestRequestLog(t *testing.T) {
	for _, c := range []struct {
		every, lines int
		level        slog.Level
	}{
		{0, 0, slog.LevelInfo}, {1, 12, slog.LevelInfo}, {5, 2 + 2, slog.LevelInfo}, {100, 2, slog.LevelInfo}, {100, 12, slog.LevelDebug},
	} {
		var log logged
		failing := false
		f := newFixture(t, func(o *Options) {
			o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: c.level}))
			o.LogRequests = c.every
			resolver := resolution.NewSingle(o.Resolver)
			o.Resolver = resolutiontest.Singly(func(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
				if failing {
					return resolution.Answer{}, resolution.ErrUnavailable
				}
				return resolver.Resolve(ctx, r)
			})
		})
		for range 10 {
			f.post(enrichment, askAda)
		}
		failing = true
		for range 2 {
			f.post(enrichment, askAda)
		}
		if n := strings.Count(log.String(), "msg=request request=req_"); n != c.lines || strings.Contains(log.String(), "ada-example") {
			t.Errorf("one in %d at %s: %d lines, want %d:\n%s", c.every, c.level, n, c.lines, &log)
		}
	}
}

// TestJobsAreLoggedByTheirID as callers know it.
func TestJobsAreLoggedByTheirID(t *testing.T) {
	var log logged
	f := newFixture(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Searcher = &searcher{search: func(context.Context, resolution.KeywordSearch, resolution.SearchPage) (resolution.SearchResult, error) {
			return resolution.SearchResult{}, io.ErrUnexpectedEOF
		}}
	})
	id := f.started(list, `{"keywords":["x"]}`)
	f.attempt(0)
	if !strings.Contains(log.String(), `msg="job failed" resolution=`+id+" ") {
		t.Errorf("%s is not in the log:\n%s", id, &log)
	}
}

// TestOperationsNotOffered: who has no data for an operation says so, and takes no
// search that would find nothing.
func TestOperationsNotOffered(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.Resolver = onlyEmails{o.Resolver}
		o.Searcher = struct {
			*searcher
			onlyEmails
		}{&searcher{}, onlyEmails{}}
	})
	for path, c := range map[string]struct {
		body   string
		status int
	}{
		"/lead/resolution/email_to_hem":  {`{"email":"ada.example@bakery.example","callback_url":"` + anywhere + `"}`, 200},
		enrichment:                       {askAda, 503},
		"/lead/resolution/ip_to_company": {`{"ip":"192.31.196.5"}`, 503},
		list:                             {`{"keywords":["x"]}`, 503},
		tally:                            {`{"keywords":["x"]}`, 503},
		listResult:                       {`{"resolution_id":"res_00000000000000000000000000000000"}`, 404},
	} {
		if a := f.post(path, c.body); a.status != c.status || c.status == http.StatusServiceUnavailable && a.code() != "unavailable" {
			t.Errorf("%s: %d %s", path, a.status, a.raw)
		}
	}
	if got := f.balance(); got.Available != plenty-1 || got.Reserved != 0 {
		t.Errorf("%+v", got)
	}
}

// onlyEmails offers email_to_hem alone.
type onlyEmails struct{ resolution.Resolver }

func (onlyEmails) Offers(o resolution.Operation) error {
	if o != resolution.EmailToHEM {
		return resolution.ErrUnavailable
	}
	return nil
}
