package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/service/callback"
)

// The limits of the callback listener. A callback is held in memory while it is
// checked, up to 1 MiB for each connection.
const (
	maxCallbackConnections = 64
	callbackHeaderTimeout  = 10 * time.Second
	callbackReadTimeout    = 20 * time.Second // including the body
	callbackWriteTimeout   = 40 * time.Second // including the time to store the answer
	callbackIdleTimeout    = time.Minute
	callbackHeaderBytes    = 16 << 10
	callbackDrainTimeout   = 15 * time.Second
)

// callbackTaker receives callbacks. *purchase.Deliveries implements it.
type callbackTaker interface {
	Deliver(ctx context.Context, d resolution.Delivery) error
	Hint(ctx context.Context, id string) error
}

// callbackSwitch gives callbacks to the services of an order: each takes those that it was asked
// about.
type callbackSwitch struct {
	takers  []callbackTaker
	ready   chan struct{} // closed once all are there
	address string        // of the listener, "" before it listens
}

// Deliver delivers to the service that was asked.
func (s *callbackSwitch) Deliver(ctx context.Context, d resolution.Delivery) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	refused := resolution.ErrNotAsked
	for _, t := range s.takers {
		switch err := t.Deliver(ctx, d); {
		case errors.Is(err, resolution.ErrNotAsked):
		case errors.Is(err, resolution.ErrInvalid):
			refused = err // the next may have been asked: ids of two services may be equal
		default:
			return err
		}
	}
	return refused
}

// Hint hints all services.
func (s *callbackSwitch) Hint(ctx context.Context, id string) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	var errs []error
	for _, t := range s.takers {
		errs = append(errs, t.Hint(ctx, id))
	}
	return errors.Join(errs...)
}

// wait waits until all services are there: what was not asked by one may have been by the next.
func (s *callbackSwitch) wait(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listenFor receives callbacks until stop, which waits for those in progress. address is the listener's own URL, as a
// service would call it. send means that the service is told it, and so must be able to reach it. Errors are about
// the flags.
func (f *callbackFlags) listenFor(ctx context.Context, to callbackTaker, send bool, log *slog.Logger) (address string, stop func() error, err error) {
	defer func() { err = cli.UsageError(err) }()
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return "", nil, wire.ListenError("--callback-listen", f.listen, err)
	}
	if ip, notIP := netip.ParseAddr(host); send && (host == "" || notIP == nil && ip.IsUnspecified()) {
		return "", nil, fmt.Errorf("--callback-listen %s is not an address the service can reach; name one with --callback-url", f.listen)
	}
	secrets, err := callbackSecrets(ctx, f.secretFile)
	if err != nil {
		return "", nil, err
	}
	server := newCallbackServer(secrets, to, log)
	scheme := "http"
	if f.tlsCert != "" {
		if server.TLSConfig, err = wire.OpenCertificate(ctx, f.tlsCert, f.tlsKey, log); err != nil {
			return "", nil, fmt.Errorf("callback_tls_cert and callback_tls_key: %w", err)
		}
		scheme = "https"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return "", nil, wire.ListenError("--callback-listen", f.listen, err)
	}
	if at, is := listener.Addr().(*net.TCPAddr); is && !at.IP.IsLoopback() && f.tlsCert == "" {
		log.Warn("callbacks are received without TLS: others on the network can read them unless a proxy adds TLS; see callback_tls_cert")
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // a TCP listener always has one
	address = fmt.Sprintf("%s://%s/", scheme, net.JoinHostPort(host, port))
	served := make(chan struct{})
	go func() {
		defer close(served)
		serveCallbacks(server, netutil.LimitListener(listener, maxCallbackConnections), log)
	}()
	log.Info("receiving callbacks", "address", address)
	return address, func() error { return stopCallbacks(server, served) }, nil
}

// callbackSecrets returns the secrets that may sign callbacks.
func callbackSecrets(ctx context.Context, file string) (secrets []callback.Secret, err error) {
	words, err := secret.ReadWords(ctx, CallbackSecretVariable, file)
	if err != nil {
		return nil, fmt.Errorf("the secret that callbacks are signed with: %w; callback_secret_file names its file", err)
	}
	for _, word := range words {
		s, err := callback.ParseSecret(word.Reveal())
		if err != nil {
			return nil, fmt.Errorf("the secret that callbacks are signed with (callback_secret_file or %s): %w", CallbackSecretVariable, err)
		}
		secrets = append(secrets, s)
	}
	return secrets, nil
}

func newCallbackServer(secrets []callback.Secret, to callbackTaker, log *slog.Logger) *http.Server {
	s := &http.Server{
		Handler: client.NewReceiver(client.ReceiverOptions{
			Verify: func(h http.Header, body []byte) (string, error) {
				return callback.Verify(h, body, secrets, time.Now())
			},
			Deliver: to.Deliver,
			Hint: func(ctx context.Context, id string) {
				if err := to.Hint(ctx, id); err != nil {
					log.Debug("a callback without an answer could not be followed up", "error", err)
				}
			},
			Log: log,
		}),
		ReadHeaderTimeout: callbackHeaderTimeout,
		ReadTimeout:       callbackReadTimeout,
		WriteTimeout:      callbackWriteTimeout,
		IdleTimeout:       callbackIdleTimeout,
		MaxHeaderBytes:    callbackHeaderBytes,
		ErrorLog:          stdlog.New(io.Discard, "", 0), // it would log addresses of senders
	}
	// With HTTP/2, one connection could send any number of bodies at once.
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	return s
}

// serveCallbacks serves callbacks until the server is stopped. If the server
// fails earlier, the run continues: answers that arrived are stored, but the
// others will not arrive.
func serveCallbacks(s *http.Server, l net.Listener, log *slog.Logger) {
	var err error
	if s.TLSConfig != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		log.Error("no more callbacks are received", "error", err)
	}
}

// stopCallbacks accepts no more callbacks, and waits for those in progress. A
// service repeats callbacks that were cut off.
func stopCallbacks(s *http.Server, served <-chan struct{}) error {
	ctx, done := context.WithTimeout(context.Background(), callbackDrainTimeout)
	defer done()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	<-served
	return err
}

// callbackFlags are the flags of a run that receives answers later.
type callbackFlags struct {
	listen          string
	secretFile      string
	tlsCert, tlsKey string
	timeout         time.Duration

	shared *callbackSwitch // by the services of an order
}

// CallbackSecretVariable is the environment variable with the secret, used if
// no file is named.
const CallbackSecretVariable = "LEADETL_CALLBACK_SECRET"

func (f *callbackFlags) check() (errs []error) {
	if (f.tlsCert == "") != (f.tlsKey == "") {
		errs = append(errs, errors.New("callback_tls_cert and callback_tls_key go together"))
	}
	if f.timeout < 0 {
		errs = append(errs, errors.New("callback_timeout is negative"))
	}
	return errs
}

// receive joins the services of an order that listen for callbacks until stop. send means that the service is told the
// address.
func (f *callbackFlags) receive(ctx context.Context, later *purchase.Deliveries, send bool, log *slog.Logger) (address string, stop func() error, err error) {
	f.shared.takers = append(f.shared.takers, later)
	if f.shared.address != "" {
		return f.shared.address, func() error { return nil }, nil
	}
	f.shared.address, stop, err = f.listenFor(ctx, f.shared, send, log)
	return f.shared.address, stop, err
}
