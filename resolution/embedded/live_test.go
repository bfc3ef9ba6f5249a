package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

// numbered are files whose people and searches say which they are of.
func numbered(tb testing.TB, n int) directory.Files {
	tb.Helper()
	return directory.Files{
		People:   file(tb, "p.csv", fmt.Sprintf("network_url,first_name\nnetwork.example/in/ada,N%d\n", n)),
		Searches: file(tb, "s.csv", fmt.Sprintf("keyword,searched_at,network_url,city\ntea,2026-11-01,network.example/in/ada,N%d\n", n)),
	}
}

func importInto(tb testing.TB, dir string, files directory.Files) {
	tb.Helper()
	if _, err := directory.Import(context.Background(), dir, files, directory.DefaultOptions()); err != nil {
		tb.Fatal(err)
	}
}

func follow(tb testing.TB, dir string, log *slog.Logger) *Live {
	tb.Helper()
	l, err := Follow(dir, Options{}, log)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// names are what the person's record and their search say.
func names(ctx context.Context, l *Live, edition string) (string, error) {
	p := firstPage(1)
	p.Deanonymize = true
	r, err := l.Search(ctx, resolution.KeywordSearch{Keywords: []string{"tea"}, Edition: edition}, p)
	if err != nil || r.Leads.Len() != 1 {
		return "", fmt.Errorf("%d leads: %w", r.Leads.Len(), err)
	}
	return r.Leads.Found(0).FirstName + " " + r.Leads.Found(0).Address.City, nil
}

// TestWithoutDirectory: emails have hashes, and nothing else has an answer.
func TestWithoutDirectory(t *testing.T) {
	l, err := Follow("", Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, o := range resolution.SingleRecord {
		if err := l.Offers(o); (err == nil) != (o == resolution.EmailToHEM) || err != nil && !errors.Is(err, resolution.ErrUnavailable) {
			t.Errorf("%s: %v", o, err)
		}
	}
}

func TestLiveConformance(t *testing.T) {
	from := resolutiontest.Sample(t)
	dir := t.TempDir()
	importInto(t, dir, directory.Files{
		People:    filepath.Join(from, "people.csv"),
		Companies: filepath.Join(from, "companies.csv"),
		IPRanges:  filepath.Join(from, "ip-ranges.csv"),
		Searches:  filepath.Join(from, "searches.csv"),
		Visits:    filepath.Join(from, "visits.csv"),
	})
	l := follow(t, dir, slog.New(slog.DiscardHandler))
	resolutiontest.Run(t, l)
	resolutiontest.RunSearch(t, l)
}

// TestRunFollows: within a second of an import, Live answers from it.
func TestRunFollows(t *testing.T) {
	dir := t.TempDir()
	importInto(t, dir, numbered(t, 1))
	next := numbered(t, 2)
	synctest.Test(t, func(t *testing.T) {
		l, err := Follow(dir, Options{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.Run(ctx) }()
		edition, fingerprint := l.Edition(), l.Fingerprint()
		importInto(t, dir, next)
		if got, err := names(ctx, l, ""); err != nil || got != "N1 N1" {
			t.Errorf("before it looked: %q, %v", got, err)
		}
		time.Sleep(pollInterval) // of the bubble's clock
		synctest.Wait()
		if got, err := names(ctx, l, ""); err != nil || got != "N2 N2" {
			t.Errorf("a second later: %q, %v", got, err)
		}
		if got, err := names(ctx, l, edition); err != nil || got != "N2 N1" {
			t.Errorf("the edition before: %q, %v; want its search", got, err)
		}
		if l.Edition() == edition || l.Fingerprint() == fingerprint || l.Fingerprint() == "" {
			t.Errorf("edition %s, fingerprint %s", l.Edition(), l.Fingerprint())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLiveUnderLookUps imports again and again while many look up: each sees
// the person and the search of one import, and no answer is lost.
func TestLiveUnderLookUps(t *testing.T) {
	dir := t.TempDir()
	importInto(t, dir, numbered(t, 0))
	l := follow(t, dir, slog.New(slog.DiscardHandler))
	first := l.Edition()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := names(t.Context(), l, "")
				if before, after, _ := strings.Cut(got, " "); err != nil || before != after || before == "" {
					t.Errorf("%q, %v; want one import's", got, err)
					return
				}
				if got, err := names(t.Context(), l, first); err != nil || !strings.HasSuffix(got, " N0") {
					t.Errorf("the first edition: %q, %v", got, err)
					return
				}
				if _, err := resolution.NewSingle(l).Resolve(t.Context(), resolution.Request{Operation: resolution.Enrichment, Key: "network.example/in/ada"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const last = 8
	for n := 1; n <= last; n++ {
		importInto(t, dir, numbered(t, n))
		l.refresh()
		if got, err := names(t.Context(), l, ""); err != nil || got != fmt.Sprintf("N%d N%d", n, n) {
			t.Errorf("after import %d: %q, %v", n, got, err)
		}
	}
	close(stop)
	wg.Wait()
}

// TestOldDirectoryStaysUntilLeft: what is under way when the directory is
// replaced, or the Live closed, finishes on it.
func TestOldDirectoryStaysUntilLeft(t *testing.T) {
	dir := t.TempDir()
	importInto(t, dir, numbered(t, 1))
	l := follow(t, dir, slog.New(slog.DiscardHandler))
	underWay := func(replace func()) {
		if err := l.with(func(e *Engine) error {
			replace()
			a, err := resolution.NewSingle(e).Resolve(t.Context(), resolution.Request{Operation: resolution.Enrichment, Key: "network.example/in/ada"})
			if err != nil || !a.Matched() || a.Lead.FirstName != "N1" {
				t.Errorf("under way: %+v, %v", a, err)
			}
			_, total, err := e.directory.Searches().Find(t.Context(), resolution.KeywordSearch{}, 0, 1)
			if total != 1 {
				t.Errorf("under way: %d leads", total)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	underWay(func() { importInto(t, dir, numbered(t, 2)); l.refresh() })
	if got, err := names(t.Context(), l, ""); err != nil || got != "N2 N2" {
		t.Errorf("%q, %v", got, err)
	}
	importInto(t, dir, numbered(t, 1))
	l.refresh()
	underWay(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := names(t.Context(), l, ""); !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("closed: %v, want ErrUnavailable", err)
	}
	if err := l.Close(); err != nil {
		t.Error("closed twice:", err)
	}
	l.refresh()
}

// TestBrokenReplacement is logged once, and the old directory stays.
func TestBrokenReplacement(t *testing.T) {
	dir := t.TempDir()
	importInto(t, dir, numbered(t, 1))
	var log bytes.Buffer
	l := follow(t, dir, slog.New(slog.NewTextHandler(&log, nil)))
	importInto(t, dir, numbered(t, 2))
	path, saved := filepath.Join(dir, "people-000002.cols5"), filepath.Join(dir, "saved")
	if err := os.Rename(path, saved); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l.refresh()
	}
	if got, err := names(t.Context(), l, ""); err != nil || got != "N1 N1" {
		t.Errorf("%q, %v", got, err)
	}
	if n := strings.Count(log.String(), "the one before stays"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	if err := os.Rename(saved, path); err != nil {
		t.Fatal(err)
	}
	l.refresh()
	if got, err := names(t.Context(), l, ""); err != nil || got != "N2 N2" {
		t.Errorf("repaired: %q, %v", got, err)
	}
}

func TestFollowNothing(t *testing.T) {
	if l, err := Follow(t.TempDir(), Options{}, slog.New(slog.DiscardHandler)); !errors.Is(err, directory.ErrNotImported) {
		t.Errorf("an empty folder: %v, %v", l, err)
	}
	l := follow(t, "", slog.New(slog.DiscardHandler))
	if l.Fingerprint() != "" || l.Edition() == "" {
		t.Errorf("fingerprint %q, edition %q", l.Fingerprint(), l.Edition())
	}
	if r, err := l.Search(t.Context(), resolution.KeywordSearch{}, firstPage(1)); err != nil || r.Total != 0 {
		t.Error(r, err)
	}
	a, err := resolution.NewSingle(l).Resolve(t.Context(), resolution.Request{Operation: resolution.EmailToHEM, Key: "ada@x.example"})
	if err != nil || !a.Matched() {
		t.Error(a, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Run(ctx); err != nil {
		t.Error(err)
	}
}
