package wire

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// ProxyTo returns the name of the environment's proxy for calls to a service,
// or "" for direct calls. A proxy's address may contain a user and a password;
// the name and the error contain neither.
//
// The client uses net/http, which reads the same variables, and calls directly
// if it cannot parse one.
func ProxyTo(service string) (name string, err error) {
	u, err := url.Parse(service)
	if err != nil {
		return "", nil // the address itself is checked elsewhere
	}
	variable, value := proxyVariable(u.Scheme)
	if value == "" {
		return "", nil
	}
	environment := httpproxy.FromEnvironment()
	environment.HTTPProxy, environment.HTTPSProxy = anyProxy, anyProxy // find out whether NO_PROXY names the service
	if is, err := environment.ProxyFunc()(u); err == nil && is == nil {
		return "", nil
	}
	if environment.CGI && u.Scheme == "http" {
		return "", fmt.Errorf("%s is ignored while REQUEST_METHOD is set, because a visitor of a web server could set it; unset one of them", variable)
	}
	if !isProxy(value) {
		return "", fmt.Errorf("the environment variable %s is not the address of a proxy; write one such as http://proxy.example:3128, or unset it", variable)
	}
	return "the proxy of " + variable, nil
}

const anyProxy = "http://proxy.invalid"

// proxyVariable returns the first variable for a scheme that has a value.
func proxyVariable(scheme string) (name, value string) {
	names := map[string][]string{"http": {"HTTP_PROXY", "http_proxy"}, "https": {"HTTPS_PROXY", "https_proxy"}}
	for _, name := range names[scheme] {
		if value := os.Getenv(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

// isProxy reports whether a value is a proxy's address: a URL, or host:port for
// an HTTP proxy.
func isProxy(value string) bool {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" {
		return false
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return true
	}
	return false
}
