package badservice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

const callback = "https://receiver.example/hook"

// listen starts a service for the length of a test.
func listen(t *testing.T, o Options) (s *Service, url string) {
	t.Helper()
	s = New(o)
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, url
}

// ask makes a call by hand. Headers come in pairs. The status is 0 when no
// answer came, or only a part of it.
func ask(t *testing.T, url, path, body string, headers ...string) (status int, h http.Header, answer string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.GetBody = nil // with it, and a key, net/http would send it again
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, response.Header, string(text)
	}
	return response.StatusCode, response.Header, string(text)
}

func enrich(i int) string {
	return fmt.Sprintf(`{"network_url":"https://network.example/in/person-%d","callback_url":"%s"}`, i, callback)
}

// certain is a service that has data about every key and this one fault,
// always.
func certain(set func(*Options)) Options {
	o := DefaultOptions()
	o.Matched = 1
	set(&o)
	return o
}

func TestFates(t *testing.T) {
	for _, f := range []struct {
		name   string
		set    func(*Options)
		fate   Fate
		status int // 0 when no whole answer comes
		billed int
	}{
		{"nothing", func(o *Options) {}, Answered, 200, 1},
		{"a miss is worked on", func(o *Options) { o.Matched = 0 }, Answered, 200, 1},
		{"refused", func(o *Options) { o.Refused = 1 }, Refused, 400, 0},
		{"503", func(o *Options) { o.Faults.Unavailable = 1 }, Unavailable, 503, 0},
		{"429", func(o *Options) { o.Faults.Limited = 1 }, Limited, 429, 0},
		{"reset before", func(o *Options) { o.Faults.ResetBefore = 1 }, ResetBefore, 0, 0},
		{"500", func(o *Options) { o.Faults.Failed = 1 }, Failed, 500, 1},
		{"reset after", func(o *Options) { o.Faults.ResetAfter = 1 }, ResetAfter, 0, 1},
		{"truncated", func(o *Options) { o.Faults.Truncated = 1 }, Truncated, 200, 1},
		{"wrong types", func(o *Options) { o.Faults.WrongTypes = 1 }, WrongTypes, 200, 1},
		{"sent twice", func(o *Options) { o.Faults.Doubled = 1 }, Doubled, 200, 1},
		{"slow", func(o *Options) { o.Faults.Slow = 1 }, Slow, 200, 1},
		{"spelled", func(o *Options) { o.Faults.Spelled = 1 }, Answered, 200, 1},
		{"no key", func(o *Options) { o.APIKey = "lrk_test_1" }, Denied, 401, 0},
		{"no credits", func(o *Options) { o.Credits = 1 }, NoCredits, 400, 0},
	} {
		t.Run(f.name, func(t *testing.T) {
			s, url := listen(t, certain(f.set))
			status, _, _ := ask(t, url, "/lead/enrichment", enrich(1))
			if fates := s.Fates(); status != f.status || fates[f.fate] != 1 || len(fates) != 1 {
				t.Errorf("status %d, fates %v; want %d, %s", status, fates, f.status, f.fate)
			}
			if got := s.Billed("network.example/in/person-1"); got != f.billed || len(s.Ledger()) != f.billed {
				t.Errorf("billed %d times, ledger %v; want %d", got, s.Ledger(), f.billed)
			}
		})
	}
}

// TestCutAnswers: one is whole HTTP that is no JSON, the next breaks off.
func TestCutAnswers(t *testing.T) {
	_, url := listen(t, certain(func(o *Options) { o.Faults.Truncated = 1 }))
	for i, want := range []int{200, 0, 200} {
		status, _, body := ask(t, url, "/lead/enrichment", enrich(i))
		if status != want || body == "" || json.Valid([]byte(body)) {
			t.Errorf("answer %d: status %d, body %q; want %d and a part", i, status, body, want)
		}
	}
}

// TestSpellings: the client reads the same out of every spelling.
func TestSpellings(t *testing.T) {
	plain, spelled := DefaultOptions(), DefaultOptions()
	spelled.Faults.Spelled = 1
	asked := func(o Options) *client.Client {
		_, url := listen(t, o)
		settings := client.DefaultOptions()
		settings.BaseURL, settings.Key = url, secret.New("key")
		c, err := client.New(settings)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	good, bad := asked(plain), asked(spelled)
	keys := map[resolution.Identifier]string{resolution.Email: "person%d@mail.example", resolution.NetworkURL: "network.example/in/person-%d", resolution.IP: "192.31.196.%d"}
	for _, op := range resolution.SingleRecord {
		matched, missed := 0, 0
		for i := range 100 {
			call := resolution.Call{Request: resolution.Request{Operation: op, Key: fmt.Sprintf(keys[op.Identifier()], i)}}
			want, err := good.Do(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			got, err := bad.Do(t.Context(), call)
			if err != nil {
				t.Fatalf("%s: %v", op, err)
			}
			if !reflect.DeepEqual(got.Found.Lead(), want.Found.Lead()) || got.Reason != want.Reason || got.ID != want.ID || got.Pending {
				t.Errorf("%s: %s\nis read as %+v\nand %s\nas %+v", op, got.Body, got.Found.Lead(), want.Body, want.Found.Lead())
			}
			if want.Found.Matched() {
				matched++
			} else {
				missed++
			}
		}
		if matched < 50 || missed < 10 {
			t.Errorf("%s: %d matched and %d missed", op, matched, missed)
		}
	}
}

func TestIdempotencyKeys(t *testing.T) {
	s, url := listen(t, certain(func(o *Options) { o.Credits = 100 }))
	first, h, body := ask(t, url, "/lead/enrichment", enrich(1), "Idempotency-Key", `"k-1"`)
	if first != 200 || h.Get("X-Credits-Spent") != "2" || h.Get("Idempotent-Replayed") != "" {
		t.Errorf("first: %d, %v", first, h)
	}
	again, h, same := ask(t, url, "/lead/enrichment", enrich(1), "Idempotency-Key", "k-1")
	if again != 200 || same != body || h.Get("X-Credits-Spent") != "0" || h.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d, %v, %s; first %s", again, h, same, body)
	}
	if other, _, _ := ask(t, url, "/lead/enrichment", enrich(2), "Idempotency-Key", "k-1"); other != 422 {
		t.Errorf("another request under the key: %d, want 422", other)
	}
	if other, _, _ := ask(t, url, "/lead/resolution/network_to_phone", enrich(1), "Idempotency-Key", "k-1"); other != 200 {
		t.Errorf("another operation under the key: %d, want 200", other)
	}
	if got := s.Spent(); got != 2+3 {
		t.Errorf("spent %d, want 5", got)
	}
	if calls := s.Calls()["k-1"]; len(calls) != 4 || calls[1].Fate != Replayed {
		t.Errorf("calls %v", calls)
	}
}

// TestFaultsDoNotBreakPromises: what was charged can be had again under its
// key, whatever became of the answer.
func TestFaultsDoNotBreakPromises(t *testing.T) {
	for name, faults := range map[string]Faults{
		"failed": {Failed: 1}, "reset": {ResetAfter: 1}, "truncated": {Truncated: 1}, "wrong types": {WrongTypes: 1},
	} {
		s, url := listen(t, certain(func(o *Options) { o.Faults = faults }))
		ask(t, url, "/lead/enrichment", enrich(1), "Idempotency-Key", "k-1")
		s.SetFaults(Faults{})
		status, h, body := ask(t, url, "/lead/enrichment", enrich(1), "Idempotency-Key", "k-1")
		if status != 200 || h.Get("Idempotent-Replayed") != "true" || !strings.Contains(body, "first_name") || s.Billed("network.example/in/person-1") != 1 {
			t.Errorf("%s: %d, %v, %s; ledger %v", name, status, h, body, s.Ledger())
		}
	}
}

func TestIdempotencyKeysIgnored(t *testing.T) {
	s, url := listen(t, certain(func(o *Options) { o.HonourKeys = false }))
	for range 2 {
		if _, h, _ := ask(t, url, "/lead/enrichment", enrich(1), "Idempotency-Key", "k-1"); h.Get("Idempotent-Replayed") != "" {
			t.Error("a key that is ignored is replayed")
		}
	}
	if got := s.Billed("network.example/in/person-1"); got != 2 {
		t.Errorf("billed %d times, want 2", got)
	}
}

func TestInFlight(t *testing.T) {
	s, url := listen(t, certain(func(o *Options) { o.Latency = 200 * time.Millisecond }))
	statuses := map[int]int{}
	var mu sync.Mutex
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			status, h, _ := ask(t, url, "/lead/enrichment", enrich(1), "Idempotency-Key", "k-1")
			mu.Lock()
			defer mu.Unlock()
			if statuses[status]++; status == 409 && h.Get("Retry-After") == "" {
				t.Error("409 without Retry-After")
			}
		})
	}
	calls.Wait()
	if statuses[200] < 1 || statuses[200]+statuses[409] != 5 || s.Billed("network.example/in/person-1") != 1 {
		t.Errorf("statuses %v, ledger %v", statuses, s.Ledger())
	}
	if statuses[409] == 0 {
		t.Error("none of five calls at once found the first in flight")
	}
}

func TestCredits(t *testing.T) {
	s, url := listen(t, certain(func(o *Options) { o.Credits = 21 }))
	statuses := map[int]int{}
	var mu sync.Mutex
	var calls sync.WaitGroup
	for i := range 30 {
		calls.Go(func() {
			status, _, _ := ask(t, url, "/lead/enrichment", enrich(i))
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	calls.Wait()
	if statuses[200] != 10 || statuses[400] != 10 || statuses[402] != 10 || s.Spent() != 20 {
		t.Errorf("statuses %v, spent %d; want 10 of each, 20", statuses, s.Spent())
	}
	s.Grant(1)
	if status, _, _ := ask(t, url, "/lead/enrichment", enrich(99)); status != 200 {
		t.Errorf("after a grant: %d", status)
	}
}

func TestTooMany(t *testing.T) {
	_, url := listen(t, certain(func(o *Options) { o.Faults.Limited = 1 }))
	for i, want := range []struct{ header, member string }{
		{"Retry-After", ""}, {"Retry-After", ""}, {"Retry-After", ""}, {"RateLimit", ""}, {"X-RateLimit-Reset", ""}, {"X-RateLimit-Reset", ""}, {"X-RateLimit-Reset", ""},
		{"", "retry_after"}, {"Retry-After", ""}, {"Retry-After", ""}, {"", ""},
	} {
		status, h, body := ask(t, url, "/lead/enrichment", enrich(1))
		var said []string
		for _, name := range []string{"Retry-After", "RateLimit", "X-RateLimit-Reset"} {
			if h.Get(name) != "" {
				said = append(said, name)
			}
		}
		if status != 429 || strings.Join(said, " ") != want.header || strings.Contains(body, "retry_after") != (want.member != "") {
			t.Errorf("refusal %d: status %d, headers %v, body %s; want %+v", i, status, said, body, want)
		}
	}
}

func TestRate(t *testing.T) {
	s, url := listen(t, certain(func(o *Options) { o.Rate, o.Burst = 0.001, 3 }))
	for i, want := range []int{200, 200, 200, 429} {
		if status, _, _ := ask(t, url, "/lead/enrichment", enrich(i)); status != want {
			t.Errorf("call %d: status %d, want %d", i, status, want)
		}
	}
	if len(s.Ledger()) != 3 {
		t.Errorf("ledger %v", s.Ledger())
	}
}

func TestDeny(t *testing.T) {
	s, url := listen(t, certain(func(o *Options) { o.APIKey = "lrk_test_1" }))
	s.Deny(2, 1)
	for i, want := range []int{200, 200, 401, 200} {
		if status, _, _ := ask(t, url, "/lead/enrichment", enrich(i), "Authorization", "Bearer lrk_test_1"); status != want {
			t.Errorf("call %d: status %d, want %d", i, status, want)
		}
	}
	s.Deny(0, -1)
	for range 3 {
		if status, _, _ := ask(t, url, "/lead/enrichment", enrich(9), "Authorization", "Bearer lrk_test_1"); status != 401 {
			t.Errorf("status %d, want 401", status)
		}
	}
}

// TestRestart: the address and the books outlast the listener.
func TestRestart(t *testing.T) {
	s, url := listen(t, certain(func(*Options) {}))
	ask(t, url, "/lead/enrichment", enrich(1), "Idempotency-Key", "k-1")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := ask(t, url, "/lead/enrichment", enrich(1)); status != 0 {
		t.Errorf("a stopped service answers %d", status)
	}
	again, err := s.Start()
	if err != nil || again != url {
		t.Fatalf("started at %s (%v), want %s", again, err, url)
	}
	if _, h, _ := ask(t, url, "/lead/enrichment", enrich(1), "Idempotency-Key", "k-1"); h.Get("Idempotent-Replayed") != "true" {
		t.Error("the key is forgotten")
	}
	if _, err := s.Start(); err == nil {
		t.Error("a service listens twice")
	}
}

// TestStorm: under all faults at once, a caller who repeats its keys gets
// everything and pays once.
func TestStorm(t *testing.T) {
	o := certain(func(o *Options) { o.Faults, o.Seed, o.Credits = Storm(), 1, 1200 })
	o.Faults.Later, o.Faults.Limited = 0, 0.02
	s, url := listen(t, o)
	settings := client.DefaultOptions()
	settings.BaseURL, settings.Key = url, secret.New("key")
	c, err := client.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for i := worker; i < 600; i += 8 {
				call := resolution.Call{Request: resolution.Request{Operation: "enrichment", Key: fmt.Sprintf("network.example/in/person-%d", i)}, IdempotencyKey: fmt.Sprint("k-", i)}
				for tries := 0; ; tries++ {
					_, err := c.Do(t.Context(), call)
					if err == nil {
						break
					}
					if errors.Is(err, resolution.ErrDenied) || tries == 100 {
						t.Errorf("call %d: %v", i, err)
						break
					}
				}
			}
		})
	}
	workers.Wait()
	for key, n := range s.BilledKeys() {
		if n != 1 {
			t.Errorf("%s is billed %d times", key, n)
		}
	}
	if len(s.Ledger()) != 600 || s.Spent() != 1200 {
		t.Errorf("%d events, %d credits; want 600, 1200", len(s.Ledger()), s.Spent())
	}
	for _, f := range []Fate{Answered, Replayed, Limited, Unavailable, ResetBefore, Failed, ResetAfter, Truncated, WrongTypes, Slow} {
		if s.Fates()[f] == 0 {
			t.Errorf("no call was %s", f)
		}
	}
}
