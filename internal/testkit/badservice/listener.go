package badservice

import (
	"errors"
	"net"
	"net/http"
	"sync"
)

// listener is the server of a Service or a Provider, for tests that stop and restart it.
type listener struct {
	mu      sync.Mutex
	idle    sync.Cond // active became 0
	active  int       // calls
	stopped bool
	address string // of the first Start
	server  *http.Server
	ended   chan error
}

// Start listens on the loopback interface and returns the service's URL. A Start
// after a Stop uses the same address again.
func (s *Service) Start() (url string, err error) { return s.listener.start(s) }

func (l *listener) start(h http.Handler) (url string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		return "", errors.New("the service is listening already")
	}
	if l.idle.L == nil {
		l.idle.L = &l.mu
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
	server, ended := &http.Server{Handler: h, ConnContext: remember, ConnState: told}, make(chan error, 1)
	l.server, l.ended = server, ended
	go func() { ended <- server.Serve(conns{open}) }()
	return "http://" + l.address, nil
}

// Stop breaks all connections and waits for the calls in progress. The service
// keeps its state.
func (s *Service) Stop() error { return s.listener.stop() }

func (l *listener) stop() error {
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

// Close is Stop, and also ends the callbacks. Nothing may be called after it.
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
