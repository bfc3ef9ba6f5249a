package serving

import (
	"bytes"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/process"
)

// refusing is a listener that accepts nothing.
type refusing struct {
	net.Listener
	err error
}

func (r refusing) Accept() (net.Conn, error) { return nil, r.err }

// TestAcceptErrorsAreTold: now and then, and without addresses.
func TestAcceptErrorsAreTold(t *testing.T) {
	var log bytes.Buffer
	now := time.Now()
	logger, clock := slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now }
	full := &net.OpError{Op: "accept", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	l := LogErrors(refusing{err: full}, "public", logger, clock)
	for _, lines := range []int{1, 2} {
		for range 100 {
			if _, err := l.Accept(); err != full {
				t.Fatal(err)
			}
		}
		said := log.String()
		if strings.Count(said, "cannot accept") != lines || !strings.Contains(said, "too many open files") || strings.Contains(said, "192.0.2.1") {
			t.Errorf("logged:\n%s", said)
		}
		now = now.Add(acceptPause)
	}
	log.Reset()
	_, _ = LogErrors(refusing{err: net.ErrClosed}, "public", logger, clock).Accept()
	if log.Len() > 0 {
		t.Errorf("the end of a listener is logged: %s", &log)
	}
}

// TestFewDescriptors: a limit below what the connections need is told at the
// start.
func TestFewDescriptors(t *testing.T) {
	allowed, known := process.MaxOpenFiles()
	if !known || allowed > math.MaxInt {
		t.Skip("there is no limit here")
	}
	for _, c := range []struct {
		connections int
		warned      bool
	}{
		{1, allowed < 1+otherDescriptors+64},
		{int(allowed), true},
	} {
		var log bytes.Buffer
		CheckDescriptors(slog.New(slog.NewTextHandler(&log, nil)), c.connections, 64)
		if strings.Contains(log.String(), "level=WARN") != c.warned {
			t.Errorf("%d connections, %d allowed: %s", c.connections, allowed, &log)
		}
	}
}
