package objects_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// fake starts a store in memory, and a client of it.
func fake(t *testing.T, texts map[string]string) (*s3test.Fake, *objects.Store) {
	t.Helper()
	s3test.Setenv(t)
	f := s3test.NewFake(t, texts)
	return f, objects.New(t.Context(), objects.Options{Endpoint: f.URL, PathStyle: true, GiveUpAfter: 20 * time.Second})
}

// read reads an object in the three ways, and returns the bytes of the first and
// whether the others have the same.
func read(t *testing.T, store *objects.Store, info objects.Info) (data []byte, err error) {
	t.Helper()
	o, err := store.Open(t.Context(), info)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	stream := o.Stream()
	data, err = io.ReadAll(stream)
	if err != nil {
		stream.Close()
		return nil, err
	}
	for name, r := range map[string]io.ReaderAt{"blocks": o, "ranges": o.Ranges()} {
		again, err := io.ReadAll(io.NewSectionReader(r, 0, o.Size))
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s: %d bytes, %v, want those of the stream, %d", name, len(again), err, len(data))
		}
	}
	return data, stream.Close()
}

// What is read is what was asked for, or an error says what came instead.
func TestAnswers(t *testing.T) {
	const size = objects.ChunkSize + objects.BlockSize + 5
	data := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
	store, client := fake(t, map[string]string{"lists/in/a.csv": data})
	// later leaves the first answer as it is.
	later := func(answer func(http.ResponseWriter, *http.Request, []byte) bool) func(http.ResponseWriter, *http.Request, []byte) bool {
		return func(w http.ResponseWriter, r *http.Request, data []byte) bool {
			from, to, _ := s3test.Asked(r)
			return (from > 0 || to != objects.BlockSize) && answer(w, r, data)
		}
	}
	// ranged answers with the range asked for, and another Content-Range.
	ranged := func(status int, format string) func(http.ResponseWriter, *http.Request, []byte) bool {
		return func(w http.ResponseWriter, r *http.Request, data []byte) bool {
			from, to, _ := s3test.Asked(r)
			to = min(to, len(data))
			return s3test.Send(w, status, strings.NewReplacer("FROM", fmt.Sprint(from), "LAST", fmt.Sprint(to-1), "TO", fmt.Sprint(to), "SIZE", fmt.Sprint(len(data))).Replace(format), data[from:to])
		}
	}
	header := func(name, value string, answer func(http.ResponseWriter, *http.Request, []byte) bool) func(http.ResponseWriter, *http.Request, []byte) bool {
		return func(w http.ResponseWriter, r *http.Request, data []byte) bool {
			w.Header()[name] = slices.DeleteFunc(strings.Split(value, "|"), func(v string) bool { return v == "" })
			return answer(w, r, data)
		}
	}
	// chunked sends bytes without their number.
	chunked := func(change func([]byte) []byte) func(http.ResponseWriter, *http.Request, []byte) bool {
		return func(w http.ResponseWriter, r *http.Request, data []byte) bool {
			from, to, _ := s3test.Asked(r)
			to = min(to, len(data))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(data)))
			w.WriteHeader(http.StatusPartialContent)
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(change(data[from:to])) // the client may be gone
			return true
		}
	}
	packed := func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(data) // to memory
		_ = z.Close()
		return b.Bytes()
	}
	first := func(w http.ResponseWriter, _ *http.Request, data []byte) bool {
		return s3test.Send(w, http.StatusPartialContent, fmt.Sprintf("bytes 0-99/%d", len(data)), data[:100])
	}
	const right = "bytes FROM-LAST/SIZE"
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, []byte) bool
		want   string // in the error; "" if the object is read
	}{
		{"as asked", nil, ""},
		{"all, with 200", s3test.Whole, ""},
		{"all, with 200, later", later(s3test.Whole), ""},
		{"all, with 206", func(w http.ResponseWriter, _ *http.Request, data []byte) bool {
			return s3test.Send(w, http.StatusPartialContent, fmt.Sprintf("bytes 0-%d/%d", len(data)-1, len(data)), data)
		}, ""},
		{"a part, with 200", ranged(200, right), ""},
		{"an unknown total, later", later(ranged(206, "bytes FROM-LAST/*")), ""},
		{"another case", ranged(206, "Bytes FROM-LAST/SIZE"), ""},
		{"without a length", chunked(func(b []byte) []byte { return b }), ""},
		{"with the length of something packed", header("Content-Encoding", "gzip", ranged(206, right)), ""}, // as it is stored

		{"another range", s3test.Shifted, "the store sent bytes 4194303-5242883 of 5242885; asked for were bytes 4194304-5242884"},
		{"always the beginning", first, "the store sent bytes 0-99 of 5242885; asked for were bytes 0-1048575"},
		{"always the beginning, later", later(first), "the store sent bytes 0-99 of 5242885; asked for were bytes "},
		{"another range, with 200", later(ranged(200, "bytes 0-LAST/SIZE")), "; asked for were bytes "},
		{"an unknown total", ranged(206, "bytes FROM-LAST/*"), "the store sent bytes 0-1048575 and did not say how many bytes the object has; asked for were bytes 0-1048575"},
		{"another total, later", later(ranged(206, "bytes FROM-LAST/9999999")), " of 9999999, but an earlier answer said that it has 5242885 bytes; asked for were bytes "},
		{"a smaller object, later", later(func(w http.ResponseWriter, _ *http.Request, data []byte) bool {
			return s3test.Send(w, 200, "", data[:len(data)/2])
		}), "the store sent bytes 0-2621441 of 2621442, but an earlier answer said that it has 5242885 bytes; asked for were bytes "},
		{"no bytes", func(w http.ResponseWriter, _ *http.Request, _ []byte) bool { return s3test.Send(w, 200, "", nil) }, "the store sent no bytes of it, but says that it has 5242885"},
		{"no bytes, later", later(func(w http.ResponseWriter, _ *http.Request, _ []byte) bool { return s3test.Send(w, 200, "", nil) }),
			"the store sent no bytes of 0, but an earlier answer said that it has 5242885 bytes"},
		{"another length", ranged(206, "bytes FROM-TO/SIZE"), "the store sent 1048576 bytes as bytes 0-1048576 of 5242885; asked for were bytes 0-1048575"},
		{"a part without saying which", ranged(206, ""), "the store sent a part without saying which (HTTP 206); asked for were bytes 0-1048575"},
		{"no content", ranged(203, ""), "the store sent a part without saying which (HTTP 203)"},
		{"several parts", header("Content-Type", "multipart/byteranges; boundary=x", ranged(206, "")), "the store sent several parts (multipart/byteranges); asked for were bytes 0-1048575"},
		{"several ranges", header("Content-Range", "bytes 0-1/2|bytes 0-1/3", ranged(206, "")), "the store sent several Content-Ranges"},
		{"no range", ranged(206, "bytes */SIZE"), `the store sent an invalid Content-Range, "bytes */5242885"`},
		{"a range that ends after the object", ranged(206, "bytes FROM-SIZE/SIZE"), "the store sent an invalid Content-Range"},
		{"a range backwards", ranged(206, "bytes LAST-FROM/SIZE"), "the store sent an invalid Content-Range"},
		{"a range of no number", ranged(206, "bytes -1-LAST/SIZE"), "the store sent an invalid Content-Range"},
		{"another unit", ranged(206, "rows FROM-LAST/SIZE"), "the store sent an invalid Content-Range"},
		{"a huge number", ranged(206, "bytes 0-99999999999999999999/99999999999999999999"), "the store sent an invalid Content-Range"},
		{"all, without a length", func(w http.ResponseWriter, _ *http.Request, data []byte) bool {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(data)
			return true
		}, "the store sent all of the object and did not say how many bytes it has (no Content-Length)"},
		{"all of too much", func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			w.Header().Set("Content-Length", "300000000")
			return true
		}, "the store sent all 300000000 bytes of the object (it ignores ranges, which is too slow for an object of this size); asked for were bytes 0-1048575"},
		{"packed on the way", chunked(packed), "as bytes 0-1048575 of 5242885"},
		{"more than it says", chunked(func(b []byte) []byte { return append(slices.Clip(b), 'x') }), "the store sent more bytes than the 1048576 of bytes 0-1048575 of 5242885"},
		{"less than it says", chunked(func(b []byte) []byte { return b[1:] }), "the store sent 1048575 bytes as bytes 0-1048575 of 5242885"},
		{"another version, later", later(header("Etag", `"other"`, ranged(206, right))), "the object has changed"},
		{"no ETag, later", later(header("Etag", "", ranged(206, right))), "the store sends no ETag with it, so a change while it is read would go unnoticed"},
		{"no version", header("Etag", "", header("Last-Modified", "", ranged(206, right))), "the store sends no ETag with it, so a change while it is read would go unnoticed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store.Do(c.answer)
			listed, err := client.Find(t.Context(), "s3://lists/in/")
			if err != nil || len(listed) != 1 {
				t.Fatal(listed, err)
			}
			for _, info := range []objects.Info{{Location: at("in/a.csv")}, listed[0]} {
				got, err := read(t, client, info)
				switch {
				case c.want == "" && (err != nil || string(got) != data):
					t.Errorf("%d bytes, %v, want %d", len(got), err, len(data))
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "s3://lists/in/a.csv")):
					t.Errorf("got  %v\nwant %s", err, c.want)
				case c.want != "" && errors.Is(err, objects.ErrUnavailable):
					t.Errorf("it is tried again: %v", err)
				}
			}
		})
	}
}

// Bytes are requested as they are stored: a proxy has no reason to pack them.
func TestAsksForStoredBytes(t *testing.T) {
	store, client := fake(t, map[string]string{"lists/a": "abc"})
	store.Do(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding: %q", got)
		}
		return false
	})
	if data, _, err := client.ReadFile(t.Context(), at("a")); string(data) != "abc" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// The size of an object is that of the answers, whatever a listing says.
func TestListedSizes(t *testing.T) {
	data := strings.Repeat("x", 3000)
	store, client := fake(t, map[string]string{"lists/in/a": data, "lists/in/b": ""})
	for name, listed := range map[string]func(string, int) int{
		"smaller": func(_ string, n int) int { return n / 3 }, "larger": func(_ string, n int) int { return n + 64 },
		"nothing": func(string, int) int { return 0 },
	} {
		store.List(listed)
		found, err := client.Find(t.Context(), "s3://lists/in/")
		if err != nil || len(found) != 2 {
			t.Fatal(found, err)
		}
		for i, want := range []string{data, ""} {
			o, err := client.Open(t.Context(), found[i])
			if err != nil {
				t.Fatal(name, err)
			}
			if got, err := read(t, client, o.Info); string(got) != want || err != nil || o.Size != int64(len(want)) || !o.ModTime.Equal(found[i].ModTime) {
				t.Errorf("%s: %s: %d bytes of %d, %v, want %d; of %s, want %s", name, o.Key, len(got), o.Size, err, len(want), o.ModTime, found[i].ModTime)
			}
			o.Close()
		}
	}
}

// Of an object without ETag, the time is the version. A listing that has an ETag shows
// that something on the way takes it off the answers.
func TestNoETag(t *testing.T) {
	store, client := fake(t, map[string]string{"lists/in/a": strings.Repeat("x", objects.BlockSize+1)})
	modified := time.Now()
	store.Do(func(w http.ResponseWriter, r *http.Request, data []byte) bool {
		w.Header().Del("Etag")
		w.Header().Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
		return s3test.Whole(w, r, data)
	})
	o, err := client.Open(t.Context(), objects.Info{Location: at("in/a")})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if data, err := read(t, client, o.Info); len(data) != objects.BlockSize+1 || err != nil {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	modified = modified.Add(time.Minute)
	if _, err := read(t, client, o.Info); !errors.Is(err, objects.ErrChanged) {
		t.Errorf("of another time: %v", err)
	}
	found, err := client.Find(t.Context(), "s3://lists/in/")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if _, err := read(t, client, found[0]); err == nil || !strings.Contains(err.Error(), "the store sends no ETag with it") {
		t.Errorf("listed with one: %v", err)
	}
}

// A small object that this package wrote is compared with its checksum.
func TestReadFileChecks(t *testing.T) {
	store, client := fake(t, nil)
	upload(t, client, "a", []byte("abc"))
	store.Do(func(w http.ResponseWriter, r *http.Request, _ []byte) bool { return s3test.Whole(w, r, []byte("abd")) })
	const want = "s3://lists/a: the store sent other bytes than were written: 3 of them, with another checksum ("
	if data, _, err := client.ReadFile(t.Context(), at("a")); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}

// What is written is compared with the size that the store says then.
func TestWrittenSize(t *testing.T) {
	store, _ := fake(t, nil)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w = of35Bytes{w}
		}
		store.ServeHTTP(w, r)
	}))
	defer front.Close()
	client := objects.New(t.Context(), objects.Options{Endpoint: front.URL, PathStyle: true, GiveUpAfter: time.Second})
	const want = "s3://lists/a: 3 bytes were written, and the store says that it has 35; use another store, or a folder"
	if _, err := client.Put(t.Context(), at("a"), objects.ContentOf([]byte("abc"), "")); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// of35Bytes says that every object has 35 bytes.
type of35Bytes struct{ http.ResponseWriter }

func (w of35Bytes) WriteHeader(status int) {
	w.Header().Set("Content-Length", "35")
	w.ResponseWriter.WriteHeader(status)
}

// A store that falls silent is given up in time, wherever it stops.
func TestStalls(t *testing.T) {
	s3test.Setenv(t)
	var stalling sync.WaitGroup
	for name, c := range map[string]struct {
		sent string // before it stops
		do   func(*objects.Store) error
	}{
		"before the answer": {"", func(s *objects.Store) error { _, _, err := s.ReadFile(t.Context(), at("a")); return err }},
		"in the headers":    {"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000\r\n", func(s *objects.Store) error { _, _, err := s.ReadFile(t.Context(), at("a")); return err }},
		"in the bytes": {"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000\r\nContent-Range: bytes 0-999/1000\r\nETag: \"e\"\r\n\r\nand",
			func(s *objects.Store) error { _, _, err := s.ReadFile(t.Context(), at("a")); return err }},
		"in a listing": {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<ListBucketResult>", func(s *objects.Store) error { _, err := s.Find(t.Context(), "s3://lists/in/"); return err }},
		"while it takes an object": {"", func(s *objects.Store) error {
			_, err := s.Put(t.Context(), at("a"), objects.ContentOf(make([]byte, objects.WholeSize), ""))
			return err
		}},
	} {
		stalling.Go(func() {
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				connection, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_, _ = connection.Write([]byte(c.sent)) // it reads nothing and sends nothing more
					t.Cleanup(func() { connection.Close() })
				}
			}))
			defer store.Close()
			began := time.Now()
			err := c.do(objects.New(t.Context(), objects.Options{Endpoint: store.URL, PathStyle: true, GiveUpAfter: time.Second}))
			want := "no answer in time); gave up after 1s; check that " + store.URL + " is up and reachable from here"
			if took := time.Since(began); !errors.Is(err, objects.ErrUnavailable) || !strings.HasSuffix(err.Error(), want) || took > 10*time.Second {
				t.Errorf("%s: after %s: %v, want %s", name, took, err, want)
			}
		})
	}
	stalling.Wait()
}

// What keeps an object from being read is said as what it is.
func TestUnreadable(t *testing.T) {
	store, client := fake(t, map[string]string{"lists/a": "abc"})
	refuse := func(status int, xml string) func(http.ResponseWriter, *http.Request, []byte) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			w.Header().Set("Content-Type", "application/xml")
			return s3test.Send(w, status, "", []byte("<Error>"+xml+"</Error>"))
		}
	}
	where := "(bucket lists, region us-east-1, endpoint " + store.URL + ")"
	for _, c := range []struct {
		name   string
		key    string
		answer func(http.ResponseWriter, *http.Request, []byte) bool
		want   string
	}{
		{"missing", "b", nil, "read s3://lists/b: file does not exist"},
		{"archived", "a", refuse(403, "<Code>InvalidObjectState</Code><Message>no</Message><StorageClass>GLACIER</StorageClass>"),
			"s3://lists/a: it is archived (storage class GLACIER), so it cannot be read " + where + "; restore it first, with aws s3api restore-object, or leave it out"},
		{"archived, anywhere", "a", refuse(403, "<Code>InvalidObjectState</Code>"), "s3://lists/a: it is archived, so it cannot be read " + where + "; restore it first, with aws s3api restore-object, or leave it out"},
		{"forbidden", "a", refuse(403, "<Code>AccessDenied</Code>"), "s3://lists/a: the credentials may not read it " + where +
			"; allow s3:GetObject on arn:aws:s3:::lists/a; without permission to list, S3 says the same about an object that does not exist"},
	} {
		store.Do(c.answer)
		if _, _, err := client.ReadFile(t.Context(), at(c.key)); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

// Errors name the endpoint and the setting that it comes from.
func TestEndpointIsNamed(t *testing.T) {
	store, _ := fake(t, map[string]string{"lists/a": "abc"})
	store.Do(func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		return s3test.Send(w, 403, "", []byte("<Error><Code>InvalidAccessKeyId</Code></Error>"))
	})
	profile := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(profile, []byte("[default]\nendpoint_url = "+store.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusal := func(setting string) string {
		from := " from " + setting
		if setting == "s3_endpoint" {
			from = ""
		}
		return "s3://lists/a: the access key does not exist (bucket lists, region us-east-1, endpoint " + store.URL + from + "); check AWS_ACCESS_KEY_ID or AWS_PROFILE, and " + setting + " where the store is not AWS"
	}
	for _, c := range []struct {
		name   string
		option string
		env    map[string]string
		want   string
	}{
		{"option", store.URL, map[string]string{"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}, refusal("s3_endpoint")},
		{"for S3", "", map[string]string{"AWS_ENDPOINT_URL_S3": store.URL, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, refusal("AWS_ENDPOINT_URL_S3")},
		{"for all", "", map[string]string{"AWS_ENDPOINT_URL": store.URL}, refusal("AWS_ENDPOINT_URL")},
		{"profile", "", map[string]string{"AWS_CONFIG_FILE": profile}, refusal("endpoint_url of the AWS profile")},
		{"no address", "", map[string]string{"AWS_ENDPOINT_URL_S3": "127.0.0.1:9000"}, "s3://lists/a: AWS_ENDPOINT_URL_S3 must be an address such as https://s3.example; correct it"},
		{"a password", "", map[string]string{"AWS_ENDPOINT_URL": "http://me:CanaryOfAPassword@127.0.0.1:1"}, "s3://lists/a: AWS_ENDPOINT_URL must be an address such as https://s3.example; correct it"},
		{"down", "", map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "gave up after 50ms; check that http://127.0.0.1:1 from AWS_ENDPOINT_URL is up and reachable from here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			client := objects.New(t.Context(), objects.Options{Endpoint: c.option, PathStyle: true, GiveUpAfter: 50 * time.Millisecond})
			if _, _, err := client.ReadFile(t.Context(), at("a")); err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
