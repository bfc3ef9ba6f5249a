package service

import "sync"

// underway counts requests, so that their end can be waited for. A server that
// was closed in the middle of them may still begin one: it is turned away.
type underway struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // made by end, closed when the last one left
}

// enter returns false when no request may begin any more.
func (u *underway) enter() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle != nil {
		return false
	}
	u.count++
	return true
}

func (u *underway) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count--; u.count == 0 && u.idle != nil {
		close(u.idle)
	}
}

// end lets no request begin, and waits for those that did. It is called once.
func (u *underway) end() {
	u.mu.Lock()
	u.idle = make(chan struct{})
	if u.count == 0 {
		close(u.idle)
	}
	u.mu.Unlock()
	<-u.idle
}
