//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"syscall"
	"testing"
)

// TestServeDashboard signs in to the pages of a running program, which has them
// only with --dashboard. Keys that are made there appear in no log.
func TestServeDashboard(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	key := p.customer("Example Rockets", "100")
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
	off := p.serve()
	for _, page := range []string{off.public + "/account", off.internal + "/operator"} {
		if status, _ := get(http.DefaultClient, page); status != http.StatusNotFound {
			t.Errorf("%s without --dashboard: %d", page, status)
		}
	}
	off.stop(syscall.SIGTERM)

	p.environ = append(p.environ, "LEADETL_SYSTEM_KEY=lrk_sys_test")
	on := p.serve("--dashboard")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := c.PostForm(on.public+"/account/sign-in", url.Values{"key": {key}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	cookies := response.Cookies()
	if response.StatusCode != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("sign in: %s, %v", response.Status, cookies)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, on.public+"/account", nil)
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
	if status, page := get(http.DefaultClient, on.internal+"/operator/sign-in"); status != http.StatusOK || !strings.Contains(page, "System key") {
		t.Errorf("the pages of operators: %d", status)
	}
	on.stop(syscall.SIGTERM)
}
