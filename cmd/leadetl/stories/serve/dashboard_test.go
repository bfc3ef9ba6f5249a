//go:build unix

package serve

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestServeDashboard signs in to the pages of a running program, which has them
// only with --dashboard. Keys that are made there appear in no log.
func TestServeDashboard(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "100")
	get := func(c *http.Client, url string) (int, string) {
		response, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	off := p.Serve()
	for _, page := range []string{off.Public + "/account", off.Internal + "/operator"} {
		if status, _ := get(http.DefaultClient, page); status != http.StatusNotFound {
			t.Errorf("%s without --dashboard: %d", page, status)
		}
	}
	off.Stop(syscall.SIGTERM)

	p.Environ = append(p.Environ, "LEADETL_SYSTEM_KEY=lrk_sys_test")
	on := p.Serve("--dashboard")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := c.PostForm(on.Public+"/account/sign-in", url.Values{"key": {key}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	cookies := response.Cookies()
	if response.StatusCode != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("sign in: %s, %v", response.Status, cookies)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, on.Public+"/account", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(cookies[0]) // a jar keeps it for https
	shown, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Body.Close()
	body, err := io.ReadAll(shown.Body)
	if err != nil || shown.StatusCode != http.StatusOK || !strings.Contains(string(body), "Example Rockets") {
		t.Errorf("%s: %s", shown.Status, body)
	}
	if status, page := get(http.DefaultClient, on.Internal+"/operator/sign-in"); status != http.StatusOK || !strings.Contains(page, "System key") {
		t.Errorf("the pages of operators: %d", status)
	}
	on.Stop(syscall.SIGTERM)
}
