package openapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/browsertest"
)

// TestPagesInABrowser has a browser load the pages as the service serves them, on
// large and small screens, and uses what their script offers.
// LEADETL_PICTURES=FOLDER keeps the pictures.
func TestPagesInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	b := browsertest.Start(t)
	pages := Pages()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, isDocs := strings.CutPrefix(r.URL.Path, "/docs")
		page := pages[strings.TrimPrefix(name, "/")]
		if !isDocs || page == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", ContentSecurityPolicy())
		_, _ = w.Write(page)
	}))
	defer server.Close()

	for name, path := range map[string]string{"docs": "/docs", "docs-enrichment": "/docs/enrichment", "docs-keyword": "/docs/keyword_to_lead_result"} {
		for _, screen := range []browsertest.Screen{
			{Name: "light", Width: 1440, Height: 900, Scale: 1}, {Name: "dark", Width: 1440, Height: 900, Scale: 1, Dark: true}, {Name: "phone", Width: 390, Height: 844, Scale: 1},
		} {
			b.Show(server.URL+path, screen)
			if folder := os.Getenv("LEADETL_PICTURES"); folder != "" {
				if err := os.WriteFile(filepath.Join(folder, name+"-"+screen.Name+".png"), b.Picture(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var wrong []string
			b.Ask(browsertest.Faults, &wrong)
			for _, w := range wrong {
				t.Errorf("%s on %s: %s", name, screen.Name, w)
			}
		}
	}

	b.Show(server.URL+"/docs/enrichment", browsertest.Screen{Width: 1440, Height: 900, Scale: 1})
	type on struct{ do, ask, want string }
	shown := "[...document.querySelectorAll('figure .in')].filter(e => e.offsetParent).map(e => e.textContent).join()"
	typed := func(into, text string) string {
		return fmt.Sprintf("(e => { e.value = %q; e.dispatchEvent(new Event('input')) })(document.querySelector('%s'))", text, into)
	}
	found := "[...document.querySelectorAll('.side li')].filter(e => e.offsetParent).map(e => e.textContent).join()"
	for _, c := range []on{
		{"", shown, "curl " + server.URL + "/lead/enrichment"},
		{"", shown, "Bearer <API_KEY>"},
		{typed(".yours input", "lrk_test_mine"), shown, "Bearer lrk_test_mine"},
		{typed(".yours input", "'; evil"), shown, "Bearer <API_KEY>"},
		{typed(".yours input", "lrk_test_mine"), shown, "Bearer lrk_test_mine"},
		{"document.querySelector('.languages [value=python]').click()", shown, "urllib.request"},
		{typed(".side .find input", "phone callback_url"), found, "Network to Phone"},
		{typed(".side .find input", "shortfall"), found, "Errors,Objects"},
		{typed(".side .find input", "xyzzy"), "document.querySelector('.side .nothing').textContent", "Nothing is called that."},
	} {
		var got string
		b.Ask("("+"() => { "+c.do+"; return String("+c.ask+") })()", &got)
		if !strings.Contains(got, c.want) {
			t.Errorf("after %s: %q, want %q", c.do, got, c.want)
		}
	}
	// The choices hold on the next page.
	b.Show(server.URL+"/docs/ip_to_company", browsertest.Screen{Width: 1440, Height: 900, Scale: 1})
	var got string
	if b.Ask(shown, &got); !strings.Contains(got, "Bearer lrk_test_mine") || !strings.Contains(got, "urllib") {
		t.Errorf("on the next page: %q", got)
	}
	if len(b.Complaints) > 0 {
		t.Errorf("the console says %q", b.Complaints)
	}
	for _, asked := range b.Asked {
		if !strings.HasPrefix(asked, server.URL+"/docs") {
			t.Errorf("the browser asked for %s", asked)
		}
	}
}
