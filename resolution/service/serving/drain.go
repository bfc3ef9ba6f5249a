package serving

import "sync"

// openRequests counts requests, so that a shutdown can wait for them. A server that
// is closed may still start a request; that request is refused.
type openRequests struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // made by drain, closed when the last request ends
}

// enter returns false when no more requests may start.
func (f *openRequests) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle != nil {
		return false
	}
	f.count++
	return true
}

func (f *openRequests) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count--; f.count == 0 && f.idle != nil {
		close(f.idle)
	}
}

// drain refuses new requests and waits for those in flight. It is called once.
func (f *openRequests) drain() {
	f.mu.Lock()
	f.idle = make(chan struct{})
	if f.count == 0 {
		close(f.idle)
	}
	f.mu.Unlock()
	<-f.idle
}
