package serving

import (
	"errors"
	"net/http"
	"time"
)

// Connections bounds the server resources that clients can use.
type Connections struct {
	Max           int           // open at once, further ones wait
	HeaderTimeout time.Duration // to send a request's header
	ReadTimeout   time.Duration // to send a request
	// WriteTimeout is from the end of the header to the end of the answer. A call
	// that is not charged shortly before that is canceled and costs nothing.
	WriteTimeout   time.Duration
	IdleTimeout    time.Duration // between requests
	MaxHeaderBytes int
	// DrainDelay is how long calls are still accepted after /readyz starts to
	// answer 503.
	DrainDelay time.Duration
	// DrainTimeout is how long requests and jobs in progress have to finish once
	// Serve is told to stop.
	DrainTimeout time.Duration
}

// DefaultConnections returns the defaults.
func DefaultConnections() Connections {
	return Connections{
		Max:            16_000, // fits the lowest common limits of file descriptors
		HeaderTimeout:  10 * time.Second,
		ReadTimeout:    30 * time.Second,
		WriteTimeout:   60 * time.Second,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		DrainTimeout:   30 * time.Second,
	}
}

// Validate returns all errors in c.
func (c Connections) Validate() (errs []error) {
	if c.Max < 1 {
		errs = append(errs, errors.New("connections: less than 1"))
	}
	if c.HeaderTimeout <= 0 || c.ReadTimeout <= 0 || c.WriteTimeout <= 0 || c.IdleTimeout <= 0 || c.DrainTimeout <= 0 || c.DrainDelay < 0 {
		errs = append(errs, errors.New("connections: every time has to be positive"))
	}
	if c.MaxHeaderBytes < 1<<10 {
		errs = append(errs, errors.New("largest header: less than 1 KiB"))
	}
	return errs
}

// server makes a server with these limits.
func (c Connections) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: c.HeaderTimeout,
		ReadTimeout:       c.ReadTimeout,
		WriteTimeout:      c.WriteTimeout,
		IdleTimeout:       c.IdleTimeout,
		MaxHeaderBytes:    c.MaxHeaderBytes,
	}
}
