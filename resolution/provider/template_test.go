package provider

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
)

// FuzzKey: whatever a key is, it is one segment of the path, one value of the query, one text of
// JSON and one field of a form, and comes out of each as it was. Names of members are as written.
func FuzzKey(f *testing.F) {
	text := `p:
  base: "https://api.example"
  key: none
  ask:
    network_url: {send: "POST /v1/{network_url}/x?a=1&b={network_url}&c", json: {k: "a{network_url}{{", "{{": 1, l: ["{network_url_https}"]}}
    ip: {send: "POST /v1/{ip}", form: {k: "{ip}", "l[]": x}}
  answers: [{match: 200 a}]
  fields: {email: a}
`
	all, err := Parse("p.yaml", []byte(text))
	if err != nil {
		f.Fatal(err)
	}
	for _, key := range []string{"linkedin.com/in/jane", "a/../b", "..", ".", "?x=y#z", `"},{"`, "\r\nX: y", "%2F", "é\u2028", "a&b=c;d", "\xff"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if key == "" {
			return
		}
		byProfile, _ := all["p"].Request(resolution.NetworkURL)
		m, is := byProfile.Message(key)
		if !is {
			if key != "." && key != ".." && strings.ToValidUTF8(key, "") == key {
				t.Errorf("%q is not askable", key)
			}
			return
		}
		u, err := url.Parse("https://api.example" + m.Target)
		if err != nil {
			t.Fatal(err)
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if len(segments) != 4 || segments[3] != "x" || u.Path != "/v1/"+key+"/x" || u.Fragment != "" {
			t.Errorf("%q: path %q", key, m.Target)
		}
		if q := u.Query(); len(q) != 3 || q.Get("b") != key || q.Get("a") != "1" {
			t.Errorf("%q: query %q", key, m.Target)
		}
		var body struct {
			K     string
			Brace int `json:"{{"`
			L     []string
		}
		if err := json.Unmarshal([]byte(m.Body), &body); err != nil || body.K != "a"+key+"{" || body.Brace != 1 || len(body.L) != 1 || body.L[0] != "https://"+key {
			t.Errorf("%q: body %q, %v", key, m.Body, err)
		}
		byAddress, _ := all["p"].Request(resolution.IP)
		m, _ = byAddress.Message(key)
		if form, err := url.ParseQuery(m.Body); err != nil || len(form) != 2 || form.Get("k") != key {
			t.Errorf("%q: form %q, %v", key, m.Body, err)
		}
	})
}
