//go:build unix

package resolvers

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// scripts is a provider whose answers are written down: the status of each request about a key, in
// order, of which the last one is repeated. Any other key is a match.
type scripts struct {
	*httptest.Server
	mu     sync.Mutex
	says   map[string][]string // STATUS, or STATUS RETRY-AFTER
	asked  map[string]int
	byKeys []string
}

func newScripts(t *testing.T, says map[string][]string) *scripts {
	s := &scripts{says: says, asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("u")
		s.mu.Lock()
		said, number := s.says[key], s.asked[key]
		if all := s.says["*"]; said == nil {
			said = all
		}
		s.asked[key]++
		s.byKeys = append(s.byKeys, key)
		s.mu.Unlock()
		status, after := http.StatusOK, ""
		if len(said) > 0 {
			_, _ = fmt.Sscan(said[min(number, len(said)-1)], &status, &after)
		}
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = io.WriteString(w, `{"email": "someone@found.example"}`)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *scripts) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKeys)
}

// newScripted is a job of two scripted providers, a and b.
func newScripted(t *testing.T, keys int, a, b map[string][]string) (x *order, first, second *scripts) {
	x = newOrder(t, profiles(keys))
	var entries strings.Builder
	for name, s := range map[string]**scripts{"a": &first, "b": &second} {
		says := a
		if name == "b" {
			says = b
		}
		*s = newScripts(t, says)
		fmt.Fprintf(&entries, `%s:
  base: "%s"
  key: header X-Key
  ask: {network_url: "GET /find?u={network_url}"}
  price: {match: 1}
  answers: [{match: 200 email}, {no_match: 404}, {bad_row: 422}, {slow_down: 429}]
  fields: {email: email}
`, name, (*s).URL)
	}
	x.write("providers.yaml", entries.String())
	x.resolvers = []string{"a: {key_file: ./key}", "b: {key_file: ./key}"}
	return x, first, second
}

// TestRefusedAtLast: a call that may have been billed is closed when its key is refused at the second
// try, and the next resolver is asked.
func TestRefusedAtLast(t *testing.T) {
	t.Parallel()
	const key = "network.example/in/person-0"
	x, a, b := newScripted(t, 1, map[string][]string{key: {"500", "422"}}, nil)
	x.run(cli.ExitRejects)
	if b.total() != 0 {
		t.Fatalf("b is asked %d times about an unknown call", b.total())
	}
	x.run(cli.ExitDone, "--retry-unknown")
	d := clitest.ReadDataset(t, x.path("out"))
	if d.Count(t, "answered_by", "b") != 1 || a.total() != 2 || b.total() != 1 {
		t.Errorf("%d rows are of b, %d and %d requests", d.Count(t, "answered_by", "b"), a.total(), b.total())
	}
	x.run(cli.ExitDone)
	if listed := clitest.Run(t, "answers", "list", "--unknown", "--json", "--state", x.path("state")); listed != "" || a.total()+b.total() != 3 {
		t.Errorf("%d requests, listed: %s", a.total()+b.total(), listed)
	}
}

// TestRetryReachesAll: --retry-unknown sends each open call of the keys of a job once more, also one
// that another dataset left and that the rows of this one went on without.
func TestRetryReachesAll(t *testing.T) {
	t.Parallel()
	x, a, b := newScripted(t, 6, map[string][]string{"*": {"500", "200"}}, nil)
	x.resolvers = []string{"b: {key_file: ./key}"}
	x.run(cli.ExitDone, "--out", x.path("first"))
	x.resolvers = []string{"a: {key_file: ./key, else: next}"}
	x.run(cli.ExitDone, "--out", x.path("second"))
	x.resolvers = []string{"a: {key_file: ./key}", "b: {key_file: ./key}"}
	x.run(cli.ExitDone)
	if n := clitest.ReadDataset(t, x.path("out")).Count(t, "answered_by", "b"); n != 6 || a.total() != 6 || b.total() != 6 {
		t.Fatalf("%d rows are of b, %d and %d requests", n, a.total(), b.total())
	}
	x.run(cli.ExitDone, "--retry-unknown")
	if n := clitest.ReadDataset(t, x.path("out")).Count(t, "answered_by", "a"); n != 6 || a.total() != 12 || b.total() != 6 {
		t.Errorf("%d rows are of a, %d and %d requests", n, a.total(), b.total())
	}
	x.run(cli.ExitDone, "--retry-unknown")
	if a.total() != 12 || b.total() != 6 {
		t.Errorf("%d and %d requests after all calls are closed", a.total(), b.total())
	}
}

// TestWaitBeyondPatience: a provider that asks for a longer wait than give_up_after is called no more
// in this run, and the time is named; with else: next the next one is asked.
func TestWaitBeyondPatience(t *testing.T) {
	t.Parallel()
	for wait, most := range map[string]int{"429 3600": 5, "429 86400": 5, "503 3600": 2} {
		x, a, b := newScripted(t, 30, map[string][]string{"*": {wait}}, nil)
		began := time.Now()
		said := x.run(cli.ExitTryAgain, "--set", "give_up_after=10s")
		if took := time.Since(began); took > 8*time.Second || a.total() > most || b.total() > 0 || !strings.Contains(said, "wants no call before 20") {
			t.Errorf("%s: after %v, %d requests: %s", wait, took, a.total(), said)
		}
		x.resolvers[0] = "a: {key_file: ./key, else: next}"
		x.run(cli.ExitDone, "--set", "give_up_after=10s", "--overwrite")
		if n := clitest.ReadDataset(t, x.path("out")).Count(t, "answered_by", "b"); n != 30 || a.total() > 12 {
			t.Errorf("%s: %d rows are of b, %d requests", wait, n, a.total())
		}
	}
}

// TestOneKeyRefused: a key that a provider refuses for ever while others are answered fails alone, after
// give_up_after, or at once if it is to wait for longer.
func TestOneKeyRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says    string
		at      []int // the keys
		atLeast time.Duration
	}{
		{"429", []int{0}, 2 * time.Second},
		{"429 1", []int{12, 29}, 2 * time.Second},
		{"429 3600", []int{0}, 0},
		{"429 3600", []int{3, 4, 20}, 0},
	} {
		says := map[string][]string{}
		for _, n := range c.at {
			says[fmt.Sprintf("network.example/in/person-%d", n)] = []string{c.says}
		}
		x, _, b := newScripted(t, 30, says, nil)
		began := time.Now()
		x.run(cli.ExitRejects, "--set", "give_up_after=2s")
		d := clitest.ReadDataset(t, x.path("out"))
		if n := d.Count(t, "reason", "unavailable:a"); n != len(c.at) || d.Count(t, "answered_by", "a") != 30-n || b.total() > 0 {
			t.Errorf("%+v: %d rows fail, %d are of a, %d calls of b", c, n, d.Count(t, "answered_by", "a"), b.total())
		}
		if took := time.Since(began); took < c.atLeast || took > 30*time.Second {
			t.Errorf("%+v: it takes %v", c, took)
		}
	}
}
