package client

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"github.com/leadetl/leadetl/resolution"
)

// encoded applies encodings to a body, one after the other.
func encoded(body string, encodings ...string) string {
	for _, name := range encodings {
		var to bytes.Buffer
		var w io.WriteCloser
		switch name {
		case "gzip":
			w = gzip.NewWriter(&to)
		case "zlib":
			w = zlib.NewWriter(&to)
		case "flate":
			w, _ = flate.NewWriter(&to, 9)
		}
		_, _ = io.WriteString(w, body)
		w.Close()
		body = to.String()
	}
	return body
}

// TestEncodings: answers whose encoding was not asked for.
func TestEncodings(t *testing.T) {
	const plain = `{"lead":{"first_name":"Ada"}}`
	bomb := encoded(strings.Repeat(" ", maxBody)+plain, "gzip")
	for _, f := range []struct {
		name     string
		status   int
		encoding string
		body     string
		class    resolution.Class // "" is the lead
		detail   string
	}{
		{"plain", 200, "", plain, "", ""},
		{"identity", 200, "identity", plain, "", ""},
		{"gzip", 200, "gzip", encoded(plain, "gzip"), "", ""},
		{"gzip by its old name", 200, "X-GZip", encoded(plain, "gzip"), "", ""},
		{"gzip in two members", 200, "gzip", encoded(plain[:9], "gzip") + encoded(plain[9:], "gzip"), "", ""},
		{"gzip that nothing names", 200, "", encoded(plain, "gzip"), "", ""},
		{"gzip by name alone", 200, "gzip", plain, "", ""},
		{"deflate", 200, "deflate", encoded(plain, "zlib"), "", ""},
		{"deflate without a frame", 200, "deflate", encoded(plain, "flate"), "", ""},
		{"deflate by name alone", 200, "deflate", plain, "", ""},
		{"twice", 200, "gzip, gzip", encoded(plain, "gzip", "gzip"), "", ""},
		{"twice, and named once", 200, "gzip", encoded(plain, "gzip", "gzip"), "", ""},
		{"once, and named twice", 200, "gzip,gzip", encoded(plain, "gzip"), "", ""},
		{"two ways", 200, "deflate, gzip", encoded(plain, "zlib", "gzip"), "", ""},
		{"brotli", 200, "br", "\x0b\x0e\x80", resolution.Protocol, "encoded with br, which was not asked for"},
		{"zstd", 200, "zstd", "\x28\xb5\x2f\xfd", resolution.Protocol, "encoded with zstd, which was not asked for"},
		{"something else", 200, "ada@mail.example", "x", resolution.Protocol, "encoded with an unknown way"},
		{"another name for none", 200, "utf-8", plain, "", ""},
		{"cut in the middle", 200, "gzip", encoded(plain, "gzip")[:20], resolution.Protocol, "the gzip of the answer is damaged or cut off"},
		{"cut in its head", 200, "gzip", encoded(plain, "gzip")[:2], resolution.Protocol, "the gzip of the answer is damaged or cut off"},
		{"another checksum", 200, "gzip", encoded(plain, "gzip")[:40] + "\x00\x00\x00\x00\x00\x00\x00\x00", resolution.Protocol, "damaged"},
		{"larger than it may be", 200, "gzip", bomb, resolution.Protocol, "larger than 33554432 bytes"},
		{"larger without an encoding", 200, "", strings.Repeat("x", maxBody+1), resolution.Protocol, "larger than 33554432 bytes"},
		{"a refusal", 400, "gzip", encoded(`{"error":{"code":"insufficient_credits"}}`, "gzip"), resolution.NoCredits, ""},
		{"a refusal that cannot be read", 429, "br", "\x0b\x0e\x80", resolution.Limited, ""},
		{"a miss that cannot be read", 404, "br", "\x0b\x0e\x80", resolution.Protocol, ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Accept-Encoding"); got != "identity" {
					t.Errorf("asked for %q", got)
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", f.encoding)
				w.WriteHeader(f.status)
				_, _ = io.WriteString(w, f.body)
			}))
			defer server.Close()
			r, err := newClient(t, to(server.URL)).Do(t.Context(), enrichment)
			var failure *resolution.CallError
			switch {
			case f.class == "" && (err != nil || r.Found.Lead() == nil || r.Found.Lead().FirstName != "Ada"):
				t.Errorf("%+v, %v", r, err)
			case f.class != "" && (!errors.As(err, &failure) || failure.Class != f.class || !strings.Contains(failure.Detail, f.detail)):
				t.Errorf("%v, want %s: %s", err, f.class, f.detail)
			}
		})
	}
}

// TestBrokenOff: what came of an answer is there to be kept.
func TestBrokenOff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"lead":{"first_name":"Ada"`)
	}))
	defer server.Close()
	_, err := newClient(t, to(server.URL)).Do(t.Context(), enrichment)
	failure, is := errors.AsType[*resolution.CallError](err)
	if !is || failure.Class != resolution.Unavailable || string(failure.PaidBody()) != `{"lead":{"first_name":"Ada"` {
		t.Errorf("%+v", failure)
	}
}

// TestEncodedDelivery: a callback may be encoded too.
func TestEncodedDelivery(t *testing.T) {
	const plain = `{"resolution":{"id":"res_1"}}`
	for _, f := range []struct {
		name, encoding, body string
		ok                   bool
	}{
		{"gzip", "gzip", encoded(plain, "gzip"), true},
		{"brotli", "br", "\x0b\x0e\x80", false},
		{"larger than it may be", "gzip", encoded(strings.Repeat(" ", maxCallback)+plain, "gzip"), false},
	} {
		d, err := ReadDelivery(http.Header{"Content-Encoding": {f.encoding}}, []byte(f.body))
		if (err == nil) != f.ok || errors.Is(err, resolution.ErrInvalid) == f.ok || f.ok && (d.ID != "res_1" || string(d.Body) != plain) {
			t.Errorf("%s: %+v, %v", f.name, d, err)
		}
	}
}
