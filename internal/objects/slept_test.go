package objects_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// client makes requests.
type client func(*http.Request) (*http.Response, error)

func (c client) Do(r *http.Request) (*http.Response, error) { return c(r) }

// TestSlept: a process that slept during a request, longer than a store may be away, tries again.
func TestSlept(t *testing.T) {
	s3test.Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	synctest.Test(t, func(t *testing.T) {
		memory, requests := s3test.NewMemory(nil), 0
		store := objects.New(t.Context(), objects.Options{Endpoint: "http://store.example", PathStyle: true, Machine: &objects.Machine{
			HTTP: client(func(r *http.Request) (*http.Response, error) {
				if requests++; requests == 1 {
					time.Sleep(10 * objects.DefaultGiveUpAfter)
					return nil, r.Context().Err()
				}
				answer := httptest.NewRecorder()
				memory.ServeHTTP(answer, r)
				return answer.Result(), nil
			}),
			Random: func() float64 { return 0 },
		}})
		if err := store.Create(t.Context(), at("a"), objects.ContentOf([]byte("text"), "")); err != nil || requests < 2 {
			t.Errorf("after %d requests: %v", requests, err)
		}
	})
}
