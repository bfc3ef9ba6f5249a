package objectstate

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// oldLists is a store whose lists lack an object, an aws.HTTPClient.
type oldLists struct {
	store http.Handler
	lacks string // a part of its key; "" for none
}

var listed = regexp.MustCompile(`<Contents><Key>[^<]*</Key>.*?</Contents>`)

func (o *oldLists) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	o.store.ServeHTTP(answer, r)
	if o.lacks != "" && s3test.IsList(r) {
		answer.Body = bytes.NewBuffer(listed.ReplaceAllFunc(answer.Body.Bytes(), func(entry []byte) []byte {
			if bytes.Contains(entry, []byte(o.lacks)) {
				return nil
			}
			return entry
		}))
	}
	return answer.Result(), nil
}

// TestTakeOverWithOldLists: a list that lacks the newest segment of the log, or the manifest that
// was just published, loses no call.
func TestTakeOverWithOldLists(t *testing.T) {
	s3test.Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	lists := &oldLists{store: s3test.NewMemory(nil)}
	open := func() *State {
		s, err := Open(objects.New(t.Context(), objects.Options{Endpoint: "http://store.example", PathStyle: true, Machine: &objects.Machine{
			Host: "host", HTTP: lists, Random: func() float64 { return 0 },
		}}), "s3://leads/state/")
		must(t, err)
		return s
	}
	first := takeOver(t, t.Context(), open(), t.TempDir(), "night")
	for _, key := range []string{"a", "b"} {
		_, err := first.Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: noon})
		must(t, err)
	}
	for _, lists.lacks = range []string{segmentName(first.log.next - 1), manifestName(3)} {
		next := takeOver(t, t.Context(), open(), t.TempDir(), "night")
		for _, key := range []string{"a", "b"} {
			if f := next.find(t, t.Context(), key); f.Open != answers.Unknown {
				t.Errorf("without %s in lists the call of %s is %q", lists.lacks, key, f.Open)
			}
		}
		must(t, next.Answers.Close())
	}
	must(t, first.Answers.Close())
}

// TestListLacksOlderSegment: what a number says must exist is read by its name, not by the list.
func TestListLacksOlderSegment(t *testing.T) {
	s3test.Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	lists := &oldLists{store: s3test.NewMemory(nil)}
	open := func() *State {
		s, err := Open(objects.New(t.Context(), objects.Options{Endpoint: "http://store.example", PathStyle: true, Machine: &objects.Machine{
			Host: "host", HTTP: lists, Random: func() float64 { return 0 },
		}}), "s3://leads/state/")
		must(t, err)
		return s
	}
	first := takeOver(t, t.Context(), open(), t.TempDir(), "night")
	for _, key := range []string{"a", "b", "c"} {
		_, err := first.Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: noon})
		must(t, err)
	}
	lists.lacks = segmentName(first.log.next - 2)
	next := takeOver(t, t.Context(), open(), t.TempDir(), "night")
	for _, key := range []string{"a", "b", "c"} {
		if f := next.find(t, t.Context(), key); f.Open != answers.Unknown {
			t.Errorf("the call of %s is %q", key, f.Open)
		}
	}
	must(t, next.Answers.Close())
	must(t, first.Answers.Close())
}
