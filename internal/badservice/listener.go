package badservice

import (
	"errors"
	"net"
	"net/http"
	"sync"
)

// listener is the service's own server, for tests that stop and restart it.
type listener struct {
	mu      sync.Mutex
	idle    sync.Cond // active has become 0
	active  int       // calls
	stopped bool
	address string // of the first Start
	server  *http.Server
	ended   chan error
}

// Start listens on the loopback and returns the service's URL. Each further
// Start, after a Stop, listens on the same address.
func (s *Service) Start() (url string, err error) {
	l := &s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		return "", errors.New("the service is listening already")
	}
	at := l.address
	if at == "" {
		at = "127.0.0.1:0"
	}
	open, err := net.Listen("tcp", at)
	if err != nil {
		return "", err
	}
	l.address, l.stopped = open.Addr().String(), false
	server, ended := &http.Server{Handler: s}, make(chan error, 1)
	l.server, l.ended = server, ended
	go func() { ended <- server.Serve(open) }()
	return "http://" + l.address, nil
}

// Stop breaks all connections and waits for the calls under way. The service
// keeps its state.
func (s *Service) Stop() error {
	l := &s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil {
		return nil
	}
	l.stopped = true
	err := l.server.Close()
	if serve := <-l.ended; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, serve)
	}
	l.server = nil
	for l.active > 0 {
		l.idle.Wait()
	}
	return err
}

// Close is Stop, and also ends the callbacks. It must be the last call.
func (s *Service) Close() error {
	s.callbacks.end()
	return s.Stop()
}

// enter counts a call; it returns false if the service is stopping.
func (l *listener) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	l.active++
	return true
}

func (l *listener) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active--; l.active == 0 {
		l.idle.Broadcast()
	}
}
