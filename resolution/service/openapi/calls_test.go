package openapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestCalls runs examples in each language: the same request leaves.
func TestCalls(t *testing.T) {
	type request struct{ method, path, key, kind, body string }
	got := make(chan request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)}
		_, _ = io.WriteString(w, `{"answered":true}`)
	}))
	defer server.Close()
	run := map[string][]string{"curl": {"sh", "-c"}, "python": {"python3", "-c"}, "javascript": {"node", "--input-type=module", "-e"}}
	for _, l := range languages {
		program := run[l.name]
		needs := program[0]
		if l.name == "curl" {
			needs = "curl"
		}
		if _, err := exec.LookPath(needs); err != nil {
			t.Logf("no %s on PATH", needs)
			continue
		}
		for _, c := range []call{
			{"/lead/enrichment", "post", "{\n  \"network_url\": \"network.example/in/o'example\",\n  \"deanonymize\": true\n}", true},
			{"/account/balance", "get", "", true},
			{"/healthz", "get", "", false},
		} {
			text := strings.NewReplacer("{base_url}", server.URL, "<API_KEY>", "lrk_test_1").Replace(l.write(c))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			said, err := exec.CommandContext(ctx, program[0], append(program[1:], text)...).CombinedOutput()
			cancel()
			if err != nil || !strings.Contains(string(said), "answered") {
				t.Errorf("%s %s: %v\n%s\n%s", l.name, c.path, err, text, said)
				continue
			}
			r := <-got
			want := request{method: strings.ToUpper(c.method), path: c.path}
			if c.credentials {
				want.key = "Bearer lrk_test_1"
			}
			if c.body != "" {
				want.kind = "application/json"
			}
			var sent, example any
			_, _ = json.Unmarshal([]byte(r.body), &sent), json.Unmarshal([]byte(c.body), &example)
			if r.body = ""; r != want || !reflect.DeepEqual(sent, example) {
				t.Errorf("%s: sent %+v %v, want %+v %v", l.name, r, sent, want, example)
			}
		}
	}
}
