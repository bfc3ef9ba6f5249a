package s3test

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fake is a small store in memory, for answers that no real store gives. It
// checks no credentials, knows no uploads in pieces, and lists all on one page.
type Fake struct {
	URL string

	mu      sync.Mutex
	objects map[string]fakeObject // by bucket/key
	answer  func(http.ResponseWriter, *http.Request, []byte) bool
	listed  func(key string, size int) int
}

type fakeObject struct {
	data     []byte
	etag     string
	modified time.Time
	metadata http.Header
}

// NewFake starts a store with objects, by bucket/key. It ends with the test.
func NewFake(t testing.TB, objects map[string]string) *Fake {
	t.Helper()
	f := NewMemory(objects)
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	f.URL = server.URL
	return f
}

// NewMemory makes a store with objects, by bucket/key, that only answers as an http.Handler.
func NewMemory(objects map[string]string) *Fake {
	f := &Fake{objects: map[string]fakeObject{}}
	for name, text := range objects {
		f.put(name, []byte(text), nil)
	}
	return f
}

// Objects returns all objects, by bucket/key.
func (f *Fake) Objects() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]string{}
	for name, o := range f.objects {
		all[name] = string(o.data)
	}
	return all
}

// Keep keeps the objects of some names, and that there are no others. back brings them back.
func (f *Fake) Keep(of func(name string) bool) (back func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	others := func(name string, _ fakeObject) bool { return !of(name) }
	kept := maps.Clone(f.objects)
	maps.DeleteFunc(kept, others)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		maps.DeleteFunc(f.objects, func(name string, _ fakeObject) bool { return of(name) })
		maps.Copy(f.objects, kept)
	}
}

// Change changes what an object holds, and neither its ETag nor its metadata; nil removes the object.
func (f *Fake) Change(name string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[name]
	o.data = data
	if f.objects[name] = o; data == nil {
		delete(f.objects, name)
	}
}

// Replace puts a copy of an object in the place of another one.
func (f *Fake) Replace(name, by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[by]
	f.put(name, o.data, o.metadata)
}

// Do makes answer answer the later requests to read an object; what it returns
// false for, the store answers itself. nil answers nothing.
func (f *Fake) Do(answer func(w http.ResponseWriter, r *http.Request, data []byte) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// List makes listed say the sizes in listings.
func (f *Fake) List(listed func(key string, size int) int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listed = listed
}

func (f *Fake) put(name string, data []byte, metadata http.Header) fakeObject {
	o := fakeObject{data, fmt.Sprintf(`"%x"`, sha256.Sum256(append([]byte(name), data...))), time.Now(), metadata}
	f.objects[name] = o
	return o
}

func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if IsList(r) {
		f.list(w, r, strings.TrimSuffix(name, "/"))
		return
	}
	if r.URL.Query().Has("uploads") {
		refuse(w, r, Fault{Status: http.StatusNotImplemented, Code: "NotImplemented"})
		return
	}
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	o, found := f.objects[name]
	answer := f.answer
	none, match := r.Header.Get("If-None-Match") == "*", r.Header.Get("If-Match")
	code := ""
	switch {
	case none && found, match != "" && found && match != o.etag:
		code = "PreconditionFailed"
	case match != "" && !found:
		code = "NoSuchKey"
	case r.Method == http.MethodPut:
		metadata := http.Header{}
		maps.Copy(metadata, r.Header)
		maps.DeleteFunc(metadata, func(name string, _ []string) bool { return !strings.HasPrefix(name, "X-Amz-Meta-") })
		w.Header().Set("Etag", f.put(name, body, metadata).etag)
	case r.Method == http.MethodDelete:
		delete(f.objects, name)
	case !found:
		code = "NoSuchKey"
	}
	f.mu.Unlock()
	switch {
	case code == "NoSuchKey":
		refuse(w, r, Fault{Status: http.StatusNotFound, Code: code})
	case code != "":
		refuse(w, r, Fault{Status: http.StatusPreconditionFailed, Code: code})
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		maps.Copy(w.Header(), o.metadata)
		w.Header().Set("Etag", o.etag)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
		if r.Method == http.MethodGet && answer != nil && answer(w, r, o.data) {
			return
		}
		if r.Header.Get("Range") != "" && len(o.data) == 0 {
			refuse(w, r, Fault{Status: http.StatusRequestedRangeNotSatisfiable, Code: "InvalidRange"})
			return
		}
		r.Header.Del("If-Match") // it was compared
		http.ServeContent(w, r, "", o.modified, bytes.NewReader(o.data))
	}
}

// list answers with one page.
func (f *Fake) list(w http.ResponseWriter, r *http.Request, bucket string) {
	type content struct {
		Key, ETag, LastModified string
		Size                    int
	}
	type prefixed struct{ Prefix string }
	var page struct {
		XMLName        xml.Name `xml:"ListBucketResult"`
		IsTruncated    bool
		Contents       []content
		CommonPrefixes []prefixed
	}
	prefix, delimiter := r.URL.Query().Get("prefix"), r.URL.Query().Get("delimiter")
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		key, found := strings.CutPrefix(name, bucket+"/")
		if !found || !strings.HasPrefix(key, prefix) {
			continue
		}
		if deeper, _, found := strings.Cut(key[len(prefix):], "/"); found && delimiter != "" {
			if below := (prefixed{prefix + deeper + "/"}); !slices.Contains(page.CommonPrefixes, below) {
				page.CommonPrefixes = append(page.CommonPrefixes, below)
			}
			continue
		}
		o := f.objects[name]
		size := len(o.data)
		if f.listed != nil {
			size = f.listed(key, size)
		}
		page.Contents = append(page.Contents, content{key, o.etag, o.modified.UTC().Format("2006-01-02T15:04:05.000Z"), size})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page) // the client may be gone
}

// Asked returns the range of bytes that a request asks for, its end as of
// slices; ok is false for one that asks for the whole object.
func Asked(r *http.Request) (from, to int, ok bool) {
	n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
	return from, to + 1, n == 2
}

// Send answers with bytes. contentRange is not sent if it is empty.
func Send(w http.ResponseWriter, status int, contentRange string, data []byte) bool {
	if contentRange != "" {
		w.Header().Set("Content-Range", contentRange)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may be gone
	return true
}

// Whole answers every request with the whole object, as a store without ranges
// does.
func Whole(w http.ResponseWriter, _ *http.Request, data []byte) bool {
	return Send(w, http.StatusOK, "", data)
}

// Shifted answers with the bytes before those that were asked for, and says so.
func Shifted(w http.ResponseWriter, r *http.Request, data []byte) bool {
	from, to, ok := Asked(r)
	if to = min(to, len(data)); !ok || from == 0 {
		return false
	}
	return Send(w, http.StatusPartialContent, fmt.Sprintf("bytes %d-%d/%d", from-1, to-2, len(data)), data[from-1:to-1])
}
