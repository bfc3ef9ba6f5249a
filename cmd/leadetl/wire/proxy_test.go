package wire

import (
	"strings"
	"testing"
)

// TestProxyTo: which proxy a service is called by, as the environment has it.
func TestProxyTo(t *testing.T) {
	const far, plain = "https://leads.example/v1", "http://leads.example"
	for _, c := range []struct {
		name, service string
		set           map[string]string
		want, says    string
	}{
		{"none", far, nil, "", ""},
		{"of the scheme", far, map[string]string{"HTTPS_PROXY": "http://proxy.example:3128", "HTTP_PROXY": ":"}, "the proxy of HTTPS_PROXY", ""},
		{"in small letters", plain, map[string]string{"http_proxy": "proxy.example:3128"}, "the proxy of http_proxy", ""},
		{"the large ones first", plain, map[string]string{"http_proxy": "a.example", "HTTP_PROXY": "b.example"}, "the proxy of HTTP_PROXY", ""},
		{"with a user", far, map[string]string{"HTTPS_PROXY": "socks5://canary:canary@proxy.example"}, "the proxy of HTTPS_PROXY", ""},
		{"not for this host", far, map[string]string{"HTTPS_PROXY": "http://proxy.example", "NO_PROXY": "leads.example"}, "", ""},
		{"not for this machine", "http://127.0.0.1:8080", map[string]string{"HTTP_PROXY": "ftp://no"}, "", ""},
		{"no URL", far, map[string]string{"HTTPS_PROXY": "http://canary:can%ary@proxy.example"}, "", "HTTPS_PROXY is not the address of a proxy"},
		{"no host", far, map[string]string{"https_proxy": "http://:3128"}, "", "https_proxy is not the address of a proxy"},
		{"no port's number", far, map[string]string{"HTTPS_PROXY": "proxy.example:canary"}, "", "HTTPS_PROXY is not the address of a proxy"},
		{"no port's number behind a scheme", far, map[string]string{"HTTPS_PROXY": "http://proxy.example:canary"}, "", "HTTPS_PROXY is not the address of a proxy"},
		{"another scheme", far, map[string]string{"HTTPS_PROXY": "ftp://proxy.example"}, "", "HTTPS_PROXY is not the address of a proxy"},
		{"CGI", plain, map[string]string{"HTTP_PROXY": "http://proxy.example", "REQUEST_METHOD": "GET"}, "", "REQUEST_METHOD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"} {
				t.Setenv(name, c.set[name])
			}
			got, err := ProxyTo(c.service)
			if got != c.want || (err == nil) != (c.says == "") {
				t.Fatalf("%q, %v; want %q, %q", got, err, c.want, c.says)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "canary")) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
