package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
)

// ServeMetrics serves routes at the address of a setting until close is called. It logs the URL
// of /metrics.
func ServeMetrics(setting, addr string, routes http.Handler, log *slog.Logger) (close func() error, err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, cli.UsageError(ListenError(setting, addr, err))
	}
	server := &http.Server{
		Handler:           routes,
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.Info("metrics", "url", "http://"+listener.Addr().String()+"/metrics")
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil { // a client reads slowly
			server.Close()
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("%s: %w", setting, err)
		}
		return nil
	}, nil
}
