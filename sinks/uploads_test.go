package sinks

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// MinIO lists the unfinished uploads of a name, and none of a folder. What a
// killed run left is aborted there too: the work folder knows it.
func TestUploadsOfAStoreThatListsNone(t *testing.T) {
	server := s3test.Start(t, "leads")
	s3test.Setenv(t)
	proxy := s3test.NewProxy(t, server)
	state := t.TempDir()
	const none = `<?xml version="1.0" encoding="UTF-8"?><ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>`
	likeMinIO := func(r *http.Request) s3test.Fault {
		q := r.URL.Query()
		if r.Method == http.MethodGet && q.Has("uploads") && (q.Get("prefix") == "" || strings.HasSuffix(q.Get("prefix"), "/")) {
			return s3test.Fault{Kind: s3test.Answer, Status: 200, Type: "application/xml", Text: none}
		}
		return s3test.Fault{}
	}
	isBegin := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploads") }
	isPiece := func(r *http.Request) bool { return r.URL.Query().Has("partNumber") }
	open := func() *Dataset {
		t.Helper()
		store := objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, GiveUpAfter: 300 * time.Millisecond})
		d, err := Open(t.Context(), "s3://leads/out", Options{Objects: store, State: disk.Dir(state)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		name string
		// killed is whether a request, of an upload that was begun begins times
		// before, and everything after it do not come through, as after a kill.
		killed func(r *http.Request, begins int) bool
		lost   func(r *http.Request, begins int) bool // its answer does not come back
	}{
		{"killed with the id known", func(r *http.Request, begins int) bool { return isPiece(r) }, nil},
		{"killed before the id was known", func(r *http.Request, begins int) bool { return begins > 1 }, func(r *http.Request, begins int) bool { return isBegin(r) }},
		{"the answer with an id is lost", nil, func(r *http.Request, begins int) bool { return isBegin(r) && begins == 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			begins, dead := 0, false
			proxy.Do(func(r *http.Request) s3test.Fault {
				if isBegin(r) {
					begins++
				}
				switch dead = dead || c.killed != nil && c.killed(r, begins); {
				case dead:
					return s3test.Fault{Kind: s3test.Reset}
				case c.lost != nil && c.lost(r, begins):
					return s3test.Fault{Kind: s3test.Lose}
				}
				return likeMinIO(r)
			})
			d := open()
			err := d.place.Write("part-00000.parquet", make([]byte, 2*8<<20))
			if (err != nil) != (c.killed != nil) || err != nil && !errors.Is(err, objects.ErrUnavailable) {
				t.Fatal(err)
			}
			if left := server.Uploads(t, "leads"); len(left) == 0 {
				t.Fatal("no upload is left: this tries nothing")
			}
			err = d.Close()
			if c.killed == nil && err != nil {
				t.Error(err)
			}
			proxy.Do(likeMinIO)
			if err := open().Close(); err != nil {
				t.Error(err)
			}
			if left := server.Uploads(t, "leads"); len(left) > 0 {
				t.Errorf("uploads left: %q", left)
			}
			if left, _ := filepath.Glob(filepath.Join(state, "s3/*/upload-*")); len(left) > 0 {
				t.Errorf("records left: %q", left)
			}
		})
	}
}
