package callback

import (
	"context"
	"crypto/x509"
	"net/http"
	"time"
)

const (
	maxHeaderBytes = 64 << 10 // of an answer
	maxBodyBytes   = 64 << 10 // of an answer, read so that the connection can be used again
	idleConns      = 128      // kept open in all
	idleTimeout    = 30 * time.Second
)

// newTransport returns the connections of one Sender: no proxy, whatever the
// environment says, no redirects, no cookies, and every connection through the
// policy's dialling. They end with life.
func newTransport(life context.Context, plain, secure dialFunc, roots *x509.CertPool, perReceiver int) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialContext:            bounded(plain, life, dialTimeout),
		DialTLSContext:         bounded(overTLS(secure, roots), life, dialTimeout),
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second}, // a connection gone silent is not used again
		DisableCompression:     true,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    min(perReceiver, 2),
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}
