package exchange

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/leadetl/leadetl/resolution"
)

// failure returns in our own words why no answer came: the text of the error may
// contain addresses.
func failure(err error) string {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	var plain tls.RecordHeaderError
	var alert tls.AlertError
	var proxy proxyError
	switch {
	case errors.Is(err, context.Canceled):
		return "the call was cancelled"
	case errors.As(err, &proxy):
		return proxy.Error()
	case errors.As(err, &dns):
		return "the service's name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &unknown):
		return "the service's certificate is from an unknown authority; name one to trust with ca_file"
	case errors.As(err, &host):
		return "the service's certificate is for another host"
	case errors.As(err, &certificate):
		return "the service's certificate is not valid"
	case errors.As(err, &plain):
		return "the service does not speak TLS; write its address with http://"
	case errors.As(err, &alert):
		return "no TLS connection could be agreed on"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	}
	return "the connection broke"
}

// classOf tells a wrong address from a service that is out of reach: a service
// without TLS at an https address, or with a certificate that is not its own or
// of an unknown authority, is the same at the next call.
func classOf(err error) resolution.Class {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var plain tls.RecordHeaderError
	if errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &plain) {
		return resolution.Denied
	}
	return resolution.Unavailable
}

// proxyError is the HTTP status with which a proxy refused a connection to the
// service.
type proxyError int

func (e proxyError) Error() string {
	return fmt.Sprintf("the proxy does not connect to the service: status %d", int(e))
}

// heedProxy is a transport's OnProxyConnectResponse. The transport's own error
// would be the proxy's text.
func heedProxy(_ context.Context, _ *url.URL, _ *http.Request, response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return proxyError(response.StatusCode)
	}
	return nil
}
