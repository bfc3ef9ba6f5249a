package s3test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
)

// Late is a store in memory that shows some objects late, an aws.HTTPClient.
type Late struct {
	*Fake
	Lacks string    // lists lack the objects with this in their keys; "" for none
	Hides string    // reads do not find the objects with this in their keys; "" for none
	Until time.Time // when Hides ends; zero for never
}

// NewLate makes an empty store that shows all.
func NewLate(t *testing.T) *Late {
	Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	return &Late{Fake: NewMemory(nil)}
}

// Client returns a client of the store, with patience if it has any.
func (l *Late) Client(t testing.TB, giveUpAfter, lateFor time.Duration) *objects.Store {
	return objects.New(t.Context(), objects.Options{Endpoint: "http://store.example", PathStyle: true, GiveUpAfter: giveUpAfter, LateFor: lateFor, Machine: &objects.Machine{
		Host: "host", HTTP: (*lateClient)(l), Random: func() float64 { return 0 },
	}})
}

type lateClient Late

var listed = regexp.MustCompile(`<Contents><Key>[^<]*</Key>.*?</Contents>|<CommonPrefixes>.*?</CommonPrefixes>`)

func (l *lateClient) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	switch list := IsList(r); {
	case !list && !IsWrite(r) && l.Hides != "" && strings.Contains(r.URL.Path, l.Hides) && (l.Until.IsZero() || time.Now().Before(l.Until)):
		refuse(answer, r, Fault{Status: http.StatusNotFound, Code: "NoSuchKey"})
	default:
		l.ServeHTTP(answer, r)
		if list && l.Lacks != "" {
			answer.Body = bytes.NewBuffer(listed.ReplaceAllFunc(answer.Body.Bytes(), func(entry []byte) []byte {
				if bytes.Contains(entry, []byte(l.Lacks)) {
					return nil
				}
				return entry
			}))
		}
	}
	response := answer.Result()
	response.Request = r
	return response, nil
}
