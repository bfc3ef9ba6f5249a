package sources

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// delivered is a file that somebody writes at a time after the begin; without a text it is removed.
type delivered struct {
	after time.Duration
	name  string
	text  string
}

// grows are the states of a file that grows every 30 s.
func grows(name string, from, to time.Duration) (all []delivered) {
	for at := from; at <= to; at += 30 * time.Second {
		all = append(all, delivered{at, name, strings.Repeat("email\n", int(at/time.Second)+1)})
	}
	return all
}

const within = 2 * time.Hour

// TestAwait: inputs are there once each has a file, and no file has changed for a minute.
func TestAwait(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     []string
		marker string
		writes []delivered
		takes  time.Duration // looks are 10 s apart
		err    string
	}{
		{"was there", []string{"a.csv"}, "", []delivered{{0, "a.csv", "x"}}, time.Minute, ""},
		{"comes later", []string{"a.csv"}, "", []delivered{{30*time.Minute - 5*time.Second, "a.csv", "x"}}, 31 * time.Minute, ""},
		{"grows slowly", []string{"a.csv"}, "", grows("a.csv", 5*time.Second, 10*time.Minute), 10*time.Minute + 40*time.Second, ""},
		{"one of two is late", []string{"a.csv", "b/*.csv"}, "", []delivered{{0, "a.csv", "x"}, {time.Hour - time.Second, "b/1.csv", "x"}}, time.Hour + time.Minute, ""},
		{"a folder that is made", []string{"lists/"}, "", []delivered{{time.Hour - time.Second, "lists/deep/1.csv", "x"}}, time.Hour + time.Minute, ""},
		{"replaced by the same size", []string{"a.csv"}, "", []delivered{{0, "a.csv", "x"}, {45 * time.Second, "a.csv", "y"}}, 50*time.Second + time.Minute, ""},
		{"removed and made again", []string{"a.csv"}, "", []delivered{{0, "a.csv", "x"}, {25 * time.Second, "a.csv", ""}, {45 * time.Second, "a.csv", "x"}}, 50*time.Second + time.Minute, ""},
		{"another file in the folder", []string{"in"}, "", []delivered{{0, "in/a.csv", "x"}, {55 * time.Second, "in/b.csv", "x"}}, 2 * time.Minute, ""},
		{"just in time", []string{"a.csv"}, "", []delivered{{within - time.Second, "a.csv", "x"}}, within + time.Minute, ""},
		{"too late", []string{"a.csv"}, "", []delivered{{within + time.Second, "a.csv", "x"}}, within, "after 2h0m0s: a.csv does not exist"},
		{"grows on and on", []string{"in/*"}, "", grows("in/a.csv", 5*time.Second, within+time.Hour), within + 10*time.Second, "its files changed less than a minute ago"},
		{"an empty folder", []string{"in"}, "", []delivered{{0, "in/_tmp", "x"}}, within, "in has no file"},
		{"nothing like the pattern", []string{"in/*.csv"}, "", []delivered{{0, "in/a.txt", "x"}}, within, "in/*.csv has no file"},

		{"a marker that was there", []string{"in"}, "_SUCCESS", []delivered{{0, "in/a.csv", "x"}, {0, "in/_SUCCESS", ""}, {0, "in/_SUCCESS", "\n"}}, time.Minute, ""},
		{"a marker that comes late", []string{"in/*.csv"}, "_SUCCESS", []delivered{{0, "in/a.csv", "x"}, {time.Hour - time.Second, "in/_SUCCESS", "\n"}}, time.Hour + time.Minute, ""},
		{"a marker beside the file", []string{"in/a.csv"}, "done", []delivered{{0, "in/a.csv", "x"}, {95 * time.Second, "in/done", "\n"}}, 160 * time.Second, ""},
		{"the marker of before", []string{"in"}, "_SUCCESS", []delivered{{0, "in/_SUCCESS", "\n"}, {time.Second, "in/a.csv", "x"}, {time.Hour - time.Second, "in/_SUCCESS", "\n"}}, time.Hour + time.Minute, ""},
		{"a marker of another folder", []string{"in/1/*", "in/2"}, "_SUCCESS", []delivered{{0, "in/1/a.csv", "x"}, {0, "in/2/a.csv", "x"}, {0, "in/1/_SUCCESS", "\n"}}, within, filepath.Join("in/2", "_SUCCESS") + " does not exist"},
		{"only a marker", []string{"in"}, "_SUCCESS", []delivered{{0, "in/_SUCCESS", "\n"}}, within, "in has no file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				deliver := func(d delivered) {
					if d.text == "" {
						_ = os.Remove(d.name)
						return
					}
					if err := errors.Join(os.MkdirAll(filepath.Dir(d.name), 0o755), os.WriteFile(d.name, []byte(d.text), 0o644), os.Chtimes(d.name, time.Now(), time.Now())); err != nil {
						t.Error(err)
					}
				}
				ctx, done := context.WithCancel(t.Context())
				go func() {
					for _, d := range c.writes {
						select {
						case <-time.After(time.Until(began.Add(d.after))):
							deliver(d)
						case <-ctx.Done():
							return
						}
					}
				}()
				synctest.Wait()
				err := Arrival{Within: within, Marker: c.marker, Log: slog.New(slog.DiscardHandler)}.Await(t.Context(), c.in)
				took := time.Since(began)
				done()
				if (err == nil) != (c.err == "") || err != nil && (!errors.Is(err, ErrNotThere) || !strings.Contains(err.Error(), c.err)) || took != c.takes {
					t.Errorf("after %s: %v; want %q after %s", took, err, c.err, c.takes)
				}
			})
		})
	}
}

// TestAwaitObjects is TestAwait on S3.
func TestAwaitObjects(t *testing.T) {
	for _, c := range []struct {
		name, in, marker string
		keys             []string // put every 20 minutes
		takes            time.Duration
		err              string
	}{
		{"an object", "s3://leads/in/a.csv", "", []string{"in/a.csv"}, 21 * time.Minute, ""},
		{"a prefix", "s3://leads/in/", "_SUCCESS", []string{"in/1/a.csv", "in/_SUCCESS"}, 41 * time.Minute, ""},
		{"a pattern", "s3://leads/in/*.csv", "", []string{"in/a.txt", "in/a.csv"}, 41 * time.Minute, ""},
		{"an older marker", "s3://leads/in/", "_SUCCESS", []string{"in/_SUCCESS", "in/a.csv"}, within, "s3://leads/in/_SUCCESS is older than a file of s3://leads/in/"},
		{"nothing", "s3://leads/in/", "", nil, within, "s3://leads/in/ has no file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := s3test.NewLate(t)
			synctest.Test(t, func(t *testing.T) {
				client := store.Client(t, 0, 0)
				began := time.Now()
				go func() {
					for _, key := range c.keys {
						time.Sleep(20*time.Minute - time.Second/2)
						if _, err := client.Put(t.Context(), objects.Location{Bucket: "leads", Key: key}, objects.ContentOf([]byte("email\n"), "")); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Second / 2)
					}
				}()
				err := Arrival{Within: within, Marker: c.marker, Objects: client, Log: slog.New(slog.DiscardHandler)}.Await(t.Context(), []string{c.in})
				took := time.Since(began)
				if (err == nil) != (c.err == "") || err != nil && (!errors.Is(err, ErrNotThere) || !strings.Contains(err.Error(), c.err)) || took != c.takes {
					t.Errorf("after %s: %v; want %q after %s", took, err, c.err, c.takes)
				}
			})
		})
	}
}

// TestAwaitEnds: what no time mends, and an interruption, end the wait at once.
func TestAwaitEnds(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), 90*time.Second)
		defer interrupt()
		for in, want := range map[string]time.Duration{"a.csv": 90 * time.Second, "in/[": 0, "https://x.example/a.csv": 0} {
			began := time.Now()
			err := Arrival{Within: within, Log: slog.New(slog.DiscardHandler)}.Await(ctx, []string{in})
			if took := time.Since(began); err == nil || errors.Is(err, ErrNotThere) || errors.Is(err, fs.ErrNotExist) || want > 0 && took > want || want == 0 && took > 0 {
				t.Errorf("%s: %v after %s", in, err, took)
			}
		}
	})
}
