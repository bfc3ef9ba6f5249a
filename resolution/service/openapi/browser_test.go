package openapi

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/browsertest"
)

// TestPageInABrowser has a browser load the page as the service serves it. The
// script ran when the server's own address is in the examples, the style was
// taken when nothing was said against it, and nothing else was asked for.
func TestPageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	browser := browsertest.Find(t)
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		if r.URL.Path != "/docs" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", ContentSecurityPolicy())
		_, _ = w.Write(Page())
	}))
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var dom, said bytes.Buffer
	c := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--v=0", "--virtual-time-budget=3000", "--dump-dom", server.URL+"/docs")
	c.Stdout, c.Stderr = &dom, &said
	c.WaitDelay = 10 * time.Second
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, said.String())
	}
	for _, line := range strings.Split(said.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the console says: %s", line)
		}
	}
	if want := "curl <span class=\"base\">" + server.URL + "</span>/lead/enrichment"; !strings.Contains(dom.String(), want) {
		t.Errorf("%q is not in the page: the script did not run", want)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(asked, " "); got != "/docs" {
		t.Errorf("the browser asked for %s", got)
	}
}
