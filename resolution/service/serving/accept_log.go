package serving

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"golang.org/x/time/rate"
)

// acceptPause is the minimum time between two log lines about one listener: the
// server tries to accept again at least every second.
const acceptPause = 10 * time.Second

// acceptLog is a listener that logs why it cannot accept, most often because the
// process has no file descriptors left. http.Server tries again without logging,
// because its log is discarded.
type acceptLog struct {
	net.Listener
	name  string
	log   *slog.Logger
	now   func() time.Time
	lines *rate.Limiter
}

// LogErrors returns l with its errors logged, at most every ten seconds and
// without addresses.
func LogErrors(l net.Listener, name string, log *slog.Logger, now func() time.Time) net.Listener {
	return &acceptLog{Listener: l, name: name, log: log, now: now, lines: rate.NewLimiter(rate.Every(acceptPause), 1)}
}

// Accept implements net.Listener.
func (l *acceptLog) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) && l.lines.AllowN(l.now(), 1) {
		l.log.Error("cannot accept connections", "listener", l.name, "error", withoutAddress(err))
	}
	return c, err
}

// withoutAddress returns the cause of a network error, without the address.
func withoutAddress(err error) error {
	if o, is := errors.AsType[*net.OpError](err); is && o.Err != nil {
		return o.Err
	}
	return err
}
