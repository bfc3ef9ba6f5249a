package service

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
	f := &fixture{TB: t}
	f.prepare(func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Now = func() time.Time { return now }
	})
	full := &net.OpError{Op: "accept", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	l := f.service.tell("public", refusing{err: full})
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
	_, _ = f.service.tell("public", refusing{err: net.ErrClosed}).Accept()
	if log.Len() > 0 {
		t.Errorf("the end of a listener is logged: %s", &log)
	}
}

// TestFewDescriptors: a limit below what the connections need is told at the
// start.
func TestFewDescriptors(t *testing.T) {
	allowed, known := descriptorLimit()
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
		f := &fixture{TB: t}
		f.prepare(func(o *Options) {
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			o.Connections.Max = c.connections
		})
		f.service.checkDescriptors()
		if strings.Contains(log.String(), "level=WARN") != c.warned {
			t.Errorf("%d connections, %d allowed: %s", c.connections, allowed, &log)
		}
	}
}
