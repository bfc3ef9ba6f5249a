package client

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
)

// Answers as our own service writes them.
const (
	hemAnswer = `{"success":true,"message":"Email to HEM resolution completed.","data":true,"resolution":{"id":"res_019aa0c1d2e37f4488aa0c1d2e37f448","status":"completed","requested_at":"2026-11-20T09:18:00.123Z","callback_url":"https://hooks.example/leads"},` +
		`"lead":{"hashed_emails":[{"email":"ecbf749d27be2a7d75d973d53b06de39","type":"md5"},{"email":"0d4ad9d8b9a3a4a3b9b79b6d0a1f3f0b7c0f2f11","type":"sha1"},{"email":"d3eadb6cbd0e66ba4e1a7ad6c8ba8d0b1f26e0a7b7a9e5a0c8d4a0a3c9fd7f11","type":"sha256"}]},` +
		`"payload":{"email":"ada@rockets.example","callback_url":"https://hooks.example/leads"}}`
	enrichmentAnswer = `{"success":true,"message":"Enrichment completed.","data":true,"resolution":{"id":"res_019aa0c1d2e37f4488aa0c1d2e37f448","status":"completed","requested_at":"2026-11-20T09:18:00.123Z"},` +
		`"lead":{"first_name":"Ada","last_name":"Example","full_name":"Ada Example","headline":"Head of Propulsion at Example Rockets, building engines that land where they are told to","job_title":"Head of Propulsion","seniority":"head","department":"engineering","email":"ada@rockets.example",` +
		`"emails":[{"email":"ada@rockets.example","type":"work"},{"email":"ada.example@mail.example","type":"personal"}],"phone":"+12025550100","phones":[{"phone":"+12025550100","type":"mobile"},{"phone":"+12025550101","type":"work"}],` +
		`"hashed_emails":[{"email":"ecbf749d27be2a7d75d973d53b06de39","type":"md5"},{"email":"0d4ad9d8b9a3a4a3b9b79b6d0a1f3f0b7c0f2f11","type":"sha1"},{"email":"d3eadb6cbd0e66ba4e1a7ad6c8ba8d0b1f26e0a7b7a9e5a0c8d4a0a3c9fd7f11","type":"sha256"},` +
		`{"email":"9b74c9897bac770ffc029102a200c5de","type":"md5"},{"email":"1f8ac10f23c5b5bc1167bda84b833e5c057a77d2","type":"sha1"},{"email":"a665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3","type":"sha256"}],` +
		`"network_url":"network.example/in/ada-example","address":{"street":"1 Launch Road","zip_code":"94016","city":"Daly City","state":"CA"},` +
		`"company":{"name":"Example Rockets","domain":"rockets.example","website_url":"https://rockets.example","network_url":"network.example/company/example-rockets","industry":"Aviation & Aerospace","revenue":"$10M - $50M","employee_count":"51-200","year_founded":1987,` +
		`"address":{"street":"1 Launch Road","zip_code":"94016","city":"Daly City","state":"CA"},"about":"Example Rockets builds small engines for small rockets, and has since before it was fashionable. Its engines are reused, its people are too, and its test stand is open to visitors on the first Sunday of each month."},` +
		`"last_seen_at":"2026-11-18T21:04:05.000Z"},"payload":{"network_url":"https://network.example/in/ada-example"}}`
)

// BenchmarkRead is what a list costs of which everything is stored.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		operation resolution.Operation
		body      string
	}{{resolution.EmailToHEM, hemAnswer}, {resolution.Enrichment, enrichmentAnswer}} {
		b.Run(string(c.operation), func(b *testing.B) {
			body := []byte(c.body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			into := resolution.NewAnswers()
			for b.Loop() {
				if into.Len() == 1024 { // of a batch
					into = resolution.NewAnswers()
				}
				if r, err := Read(c.operation, 200, body, into); err != nil || !r.Found.Matched() {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDo is one call on a connection that is kept, beside the same with
// net/http alone. The service writes bytes, so that most of it is the caller's.
func BenchmarkDo(b *testing.B) {
	at := bareServer(b, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: 019aa0c1d2e37f44\r\nX-Credits-Spent: 1\r\n"+
		"RateLimit-Policy: \"single\";q=600;w=60\r\nRateLimit: \"single\";r=19;t=2\r\nContent-Length: %d\r\n\r\n%s", len(hemAnswer), hemAnswer))
	o := DefaultOptions()
	o.BaseURL, o.Key, o.CallbackURL = at, secret.New(key), "https://hooks.example/leads"
	c, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	call := resolution.Call{Request: resolution.Request{Operation: resolution.EmailToHEM, Key: "ada@rockets.example"}, IdempotencyKey: "k", ClientRef: strings.Repeat("0", 64)}
	b.Run("client", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(b.Context(), call); err != nil {
				b.Fatal(err)
			}
		}
	})
	_, question, _ := c.question(call)
	b.Run("net/http", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			response, err := (&http.Client{Transport: c.line.HTTP}).Post(at+"/", "application/json", strings.NewReader(string(question)))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadAll(response.Body); err != nil {
				b.Fatal(err)
			}
			response.Body.Close()
		}
	})
}

// bareServer answers every request with the same bytes.
func bareServer(b *testing.B, answer string) (url string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			for {
				request, err := http.ReadRequest(r)
				if err != nil {
					break
				}
				io.Copy(io.Discard, request.Body)
				io.WriteString(conn, answer)
			}
			conn.Close()
		}
	}()
	b.Cleanup(func() { listener.Close(); <-done })
	return "http://" + listener.Addr().String()
}
