package worldtest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// create tries to create an object, and returns the status of the answer.
func create(t *testing.T, from Link, name, text string) (status int, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://store.example/bucket/"+name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("If-None-Match", "*")
	answer, err := from.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, nil
}

// TestBucketFaults: each object meets the same faults, in whatever order they are written, and
// some are created although their answers were lost.
func TestBucketFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := 0
		for seed := range uint64(50) {
			var met []map[string]string
			for _, order := range [][]string{{"a", "b", "c"}, {"c", "a", "b"}} {
				w := New(seed, nil)
				b := NewBucket(w, s3test.NewMemory(nil))
				b.Failing = 0.4
				m := w.Another(1)
				m.Begin(t.Context(), 0)
				results := map[string]string{}
				for _, name := range order {
					status := 0
					for status != http.StatusOK && status != http.StatusPreconditionFailed {
						var err error
						if status, err = create(t, b.From(m), name, "text"); err != nil && !errors.Is(err, errBroken) {
							t.Fatal(err)
						}
						results[name] += fmt.Sprint(status, " ")
					}
					if status == http.StatusPreconditionFailed {
						lost++
					}
				}
				met = append(met, results)
			}
			if !maps.Equal(met[0], met[1]) {
				t.Errorf("seed %d: %v, in another order %v", seed, met[0], met[1])
			}
		}
		if lost == 0 {
			t.Error("no object was created whose answer was lost")
		}
	})
}

// TestAsleep: the request with which a machine falls asleep is done before the sleep or after
// it, and its answer comes afterwards. So is one that a machine makes when it crashes, or it is
// lost, or it arrives much later.
func TestAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := map[string]int{}
		for seed := range uint64(100) {
			w := New(seed, nil)
			b := NewBucket(w, s3test.NewMemory(nil))
			other, asleep, dying := w.Another(1), w.Another(2), w.Another(3)
			other.Begin(t.Context(), 0)
			asleep.SleepsFor(time.Hour)
			asleep.Begin(t.Context(), 1)
			dying.Begin(t.Context(), 1)
			began := time.Now()
			woke := make(chan int)
			go func() {
				status, err := create(t, b.From(asleep), "slept", "mine")
				if err != nil {
					t.Error(err)
				}
				woke <- status
			}()
			<-asleep.FellAsleep()
			time.Sleep(time.Minute)
			if _, err := create(t, b.From(dying), "died", "theirs"); !errors.Is(err, ErrCrashed) {
				t.Errorf("seed %d: a dead machine got %v", seed, err)
			}
			status, _ := create(t, b.From(other), "slept", "theirs")
			if mine := <-woke; mine == status || time.Since(began) < time.Hour {
				t.Errorf("seed %d: both got %d, after %s", seed, status, time.Since(began))
			}
			times[fmt.Sprint("slept: ", status)]++
			status, _ = create(t, b.From(other), "died", "ours")
			times[fmt.Sprint("died: ", status)]++
		}
		if len(times) != 4 || times["slept: 200"] < 30 || times["slept: 412"] < 30 {
			t.Errorf("%v", times)
		}
	})
}

// TestDamageObject: each kind of damage comes, and changes one object.
func TestDamageObject(t *testing.T) {
	came, text := map[string]int{}, strings.Repeat("text of a", 20)
	objects := map[string]string{"bucket/in/a": text, "bucket/in/b": "text of b", "bucket/beside": "other text"}
	for seed := range uint64(300) {
		store := s3test.NewMemory(objects)
		in := Objects{New(seed, nil), store, "bucket/in/"}
		back := in.Keep()
		did := in.Damage("a", "b")
		kind, _, _ := strings.Cut(did, " ")
		came[kind]++
		files := in.Files()
		now, found := files["a"]
		right := map[string]bool{
			"gone": !found, "cut": found && len(now) < len(text) && strings.HasPrefix(text, now), "doubled": now == text && files["b"] == text,
			"flipped": len(now) == len(text), "zeroed": len(now) == len(text) && (now == text || strings.Contains(now, "\x00")),
		}
		if !right[kind] || kind != "doubled" && files["b"] != "text of b" || store.Objects()["bucket/beside"] != "other text" {
			t.Errorf("seed %d: %q: %q", seed, did, files)
		}
		if back(); !maps.Equal(store.Objects(), objects) {
			t.Errorf("seed %d: %q, and %q come back", seed, did, store.Objects())
		}
	}
	if len(came) != 5 {
		t.Errorf("of 300 %v", came)
	}
	if did := (Objects{New(1, nil), s3test.NewMemory(nil), "bucket/"}).Damage("a", ""); did != "" {
		t.Errorf("an object that is not there is %s", did)
	}
}
