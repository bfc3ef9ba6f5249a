package service

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"golang.org/x/time/rate"
)

// acceptPause is the least time between two lines of the log about one
// listener: the server tries again every second at the latest.
const acceptPause = 10 * time.Second

// telling is a listener that logs why it cannot accept: most often the process
// has no descriptors left. The server goes on trying and says nothing.
type telling struct {
	net.Listener
	name string
	log  *slog.Logger
	now  func() time.Time
	some *rate.Limiter
}

func (s *Service) tell(name string, l net.Listener) net.Listener {
	return &telling{Listener: l, name: name, log: s.log, now: s.now, some: rate.NewLimiter(rate.Every(acceptPause), 1)}
}

// Accept is a net.Listener's.
func (t *telling) Accept() (net.Conn, error) {
	c, err := t.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) && t.some.AllowN(t.now(), 1) {
		t.log.Error("cannot accept connections", "listener", t.name, "error", withoutAddress(err))
	}
	return c, err
}

// withoutAddress is an error of the network without whose it is.
func withoutAddress(err error) error {
	if o, is := errors.AsType[*net.OpError](err); is && o.Err != nil {
		return o.Err
	}
	return err
}

// otherDescriptors is how many descriptors are for other things than
// connections and callbacks: databases, the directory, listeners, the log.
const otherDescriptors = 128

// checkDescriptors warns when the process may not open as many connections as
// it is to hold.
func (s *Service) checkDescriptors() {
	allowed, known := descriptorLimit()
	if !known {
		return
	}
	needed := uint64(s.options.Connections.Max) + uint64(s.options.CallbackConcurrency) + otherDescriptors
	if allowed < needed {
		s.log.Warn("the process may open fewer files than its connections need; raise the limit (ulimit -n) or allow fewer connections",
			"connections", s.options.Connections.Max, "needed", needed, "allowed", allowed)
	}
}
