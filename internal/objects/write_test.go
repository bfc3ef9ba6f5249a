package objects_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// once is a fault of the n-th request (from 1) among those that match.
func once(n int, match func(*http.Request) bool, f s3test.Fault) func(*http.Request) s3test.Fault {
	seen := 0
	return func(r *http.Request) s3test.Fault {
		if !match(r) {
			return s3test.Fault{}
		}
		if seen++; seen != n {
			return s3test.Fault{}
		}
		return f
	}
}

// answer is a refusal.
func answer(status int, code string) s3test.Fault {
	return s3test.Fault{Kind: s3test.Refuse, Status: status, Code: code}
}

// Whatever happens on the way, a put object is there, and the same.
func TestPut(t *testing.T) {
	server, proxy, store := stores(t)
	put := func(r *http.Request) bool { return r.Method == http.MethodPut }
	anything := func(*http.Request) bool { return true }
	for _, c := range []struct {
		name   string
		before string // what is there; "" for nothing
		fault  func(*http.Request) s3test.Fault
		writes int // at most
	}{
		{"nothing there", "", nil, 1},
		{"the same there", "new", nil, 1},
		{"another there", "old", nil, 2},
		{"an answer is lost", "", once(1, put, s3test.Fault{Kind: s3test.Lose}), 3},
		{"an answer is lost, another there", "old", once(2, put, s3test.Fault{Kind: s3test.Lose}), 4},
		{"a broken connection", "", once(1, put, s3test.Fault{Kind: s3test.Reset}), 3},
		{"an internal error", "", once(1, put, answer(500, "InternalError")), 3},
		{"slow down", "", once(1, put, answer(503, "SlowDown")), 3},
		{"a conflict", "", once(1, put, answer(409, "ConditionalRequestConflict")), 3},
		{"a condition that fails for no reason", "", once(1, put, answer(412, "PreconditionFailed")), 3},
		{"spoiled on the way", "", once(1, put, answer(400, "BadDigest")), 3},
		{"said to be done, and not", "", once(1, put, s3test.Fault{Kind: s3test.Swallow}), 3},
		{"a confirmation that fails", "", once(2, anything, answer(500, "")), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := "put/" + strings.ReplaceAll(c.name, " ", "-")
			proxy.Do(nil)
			if c.before != "" {
				if _, err := store.Put(t.Context(), at(key), objects.ContentOf([]byte(c.before), "text/plain")); err != nil {
					t.Fatal(err)
				}
			}
			writes := 0
			proxy.Do(func(r *http.Request) (f s3test.Fault) {
				if put(r) {
					writes++
				}
				if c.fault != nil {
					f = c.fault(r)
				}
				return f
			})
			info, err := store.Put(t.Context(), at(key), objects.ContentOf([]byte("new"), "text/plain"))
			if err != nil || onDisk(t, server, key) != "new" || info.Size != 3 || info.ETag == "" || info.ModTime.IsZero() {
				t.Errorf("%+v, %v", info, err)
			}
			if writes > c.writes {
				t.Errorf("%d writes, want %d at most", writes, c.writes)
			}
			proxy.Do(nil)
			if again, err := store.Stat(t.Context(), at(key)); err != nil || again.ETag != info.ETag || again.SHA256 != hex.EncodeToString(sum("new")) {
				t.Errorf("Stat: %+v, %v", again, err)
			}
		})
	}
}

// TestPutIntoFolder: names that a store on a file system can never take are
// refused at once, and not tried again for minutes.
func TestPutIntoFolder(t *testing.T) {
	server, proxy, store := stores(t)
	if err := os.MkdirAll(filepath.Join(server.Dir, bucket, "taken/part.parquet/below"), 0o755); err != nil {
		t.Fatal(err)
	}
	upload(t, store, "taken/file", []byte("x"))
	for key, want := range map[string]string{
		"taken/part.parquet": "a folder has the name of this object",
		"taken/file/below":   "an object has the name of the folder",
	} {
		before := proxy.Seen()
		_, err := store.Put(t.Context(), at(key), objects.ContentOf([]byte("new"), "text/plain"))
		var refused *objects.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it refused: %s", key, err, want)
		}
		if n := proxy.Seen() - before; n > 3 {
			t.Errorf("%s: %d requests", key, n)
		}
	}
}

// TestRefusedForGood: of the answers 4xx only those are tried again that say
// that it may help.
func TestRefusedForGood(t *testing.T) {
	_, proxy, _ := stores(t)
	for _, c := range []struct {
		status int
		code   string
		again  bool
	}{
		{400, "InvalidArgument", false}, {405, "MethodNotAllowed", false}, {409, "InvalidBucketState", false}, {411, "MissingContentLength", false}, {413, "EntityTooLarge", false},
		{408, "", true}, {409, "OperationAborted", true}, {409, "ConditionalRequestConflict", true}, {429, "TooManyRequests", true},
	} {
		proxy.Do(func(*http.Request) s3test.Fault { return answer(c.status, c.code) })
		store := objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, GiveUpAfter: 200 * time.Millisecond})
		_, _, err := store.ListFolder(t.Context(), at("in/"))
		if err == nil || errors.Is(err, objects.ErrUnavailable) != c.again {
			t.Errorf("%d %s: %v, want it tried again: %v", c.status, c.code, err, c.again)
		}
	}
	proxy.Do(nil)
}

func sum(text string) []byte {
	s := sha256.Sum256([]byte(text))
	return s[:]
}

// Large objects go in pieces, whatever happens on the way, and no unfinished
// upload stays.
func TestPutPieces(t *testing.T) {
	server, proxy, store := stores(t)
	data := make([]byte, 2*objects.WholeSize+1<<20)
	rand.NewChaCha8([32]byte{1}).Read(data)
	content := objects.ContentOf(data, "")
	query := func(method, with string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.RawQuery, with) }
	}
	ours := func(name string) bool { return strings.HasPrefix(name, "part") }
	for _, c := range []struct {
		name  string
		fault func(*http.Request) s3test.Fault
	}{
		{"no fault", nil},
		{"the beginning is lost", once(1, query("POST", "uploads"), s3test.Fault{Kind: s3test.Lose})},
		{"a piece is lost", once(2, query("PUT", "partNumber"), s3test.Fault{Kind: s3test.Lose})},
		{"a piece is refused", once(3, query("PUT", "partNumber"), answer(503, "SlowDown"))},
		{"the end is lost", once(1, query("POST", "uploadId"), s3test.Fault{Kind: s3test.Lose})},
		{"the end fails", once(1, query("POST", "uploadId"), answer(500, "InternalError"))},
		{"the upload is gone", once(1, query("PUT", "partNumber"), answer(404, "NoSuchUpload"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := "part-" + strings.ReplaceAll(c.name, " ", "-")
			proxy.Do(c.fault)
			info, err := store.Put(t.Context(), at("big/"+name), content)
			if err != nil || info.Size != content.Size {
				t.Fatalf("%+v, %v", info, err)
			}
			if onDisk(t, server, "big/"+name) != string(data) {
				t.Error("the object holds something else")
			}
			proxy.Do(nil)
			if again, err := store.Put(t.Context(), at("big/"+name), content); err != nil || again.ETag != info.ETag {
				t.Errorf("the same again: %+v, %v", again, err)
			}
			if left := server.Uploads(t, bucket); len(left) > 0 != (c.name == "the beginning is lost") {
				t.Errorf("unknown uploads: %q", left)
			}
			if err := store.AbortUploads(t.Context(), at("big/"), ours); err != nil {
				t.Error(err)
			}
			if left := server.Uploads(t, bucket); len(left) > 0 {
				t.Errorf("uploads left: %q", left)
			}
			if err := store.Remove(t.Context(), at("big/"+name)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store that does not know conditions is written to without, and spoken of
// once.
func TestStoreWithoutConditions(t *testing.T) {
	server, proxy, _ := stores(t)
	var log bytes.Buffer
	store := objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	proxy.Do(func(r *http.Request) s3test.Fault {
		if r.Header.Get("If-None-Match")+r.Header.Get("If-Match") != "" && s3test.IsWrite(r) {
			return answer(501, "NotImplemented")
		}
		return s3test.Fault{}
	})
	for _, text := range []string{"one", "two", "two"} {
		if _, err := store.Put(t.Context(), at("a"), objects.ContentOf([]byte(text), "")); err != nil || onDisk(t, server, "a") != text {
			t.Errorf("%s: %v", text, err)
		}
	}
	lock, err := store.Lock(t.Context(), at("_lock"), objects.Holder{Name: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Beat(t.Context()); err != nil {
		t.Error(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "conditional writes"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &log)
	}
}

// What is asked for of written objects is asked of every way to write one, and
// nothing is where nothing was.
func TestWriteOptions(t *testing.T) {
	_, proxy, _ := stores(t)
	headers := []string{"X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", "X-Amz-Acl"}
	for _, c := range []struct {
		o    objects.Options
		want string
	}{
		{objects.Options{}, "||"},
		{objects.Options{SSE: "AES256"}, "AES256||"},
		{objects.Options{SSE: "aws:kms", KMSKey: "alias/leads", ACL: "bucket-owner-full-control"}, "aws:kms|alias/leads|bucket-owner-full-control"},
	} {
		c.o.Endpoint, c.o.PathStyle = proxy.URL, true
		for _, size := range []int{1, objects.WholeSize + 1} {
			var got []string
			proxy.Do(func(r *http.Request) s3test.Fault {
				for _, h := range headers {
					got = append(got, r.Header.Get(h))
				}
				return answer(403, "AccessDenied")
			})
			_, err := objects.New(t.Context(), c.o).Put(t.Context(), at("a"), objects.ContentOf(make([]byte, size), ""))
			if strings.Join(got, "|") != c.want || err == nil {
				t.Errorf("%+v, %d bytes: %q, %v, want %q", c.o, size, got, err, c.want)
			}
		}
	}
}

func TestRemove(t *testing.T) {
	server, _, store := stores(t)
	for range 2 { // the second time it is not there
		if err := store.Remove(t.Context(), at("a")); err != nil {
			t.Error(err)
		}
	}
	if _, err := store.Put(t.Context(), at("a"), objects.ContentOf(nil, "")); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove(t.Context(), at("a")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(server.Dir, bucket, "a")); !os.IsNotExist(err) {
		t.Errorf("after Remove: %v", err)
	}
}
