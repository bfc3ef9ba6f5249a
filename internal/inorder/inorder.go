// Package inorder does work on several goroutines and delivers the results in
// the order of the work.
//
// It is conc's stream without its shared pool of channels, which tests in
// synctest bubbles cannot use.
package inorder

import (
	"runtime"

	"github.com/sourcegraph/conc/pool"
)

// Queue is work in progress. At most as many results wait to be taken as there are
// goroutines.
type Queue[T any] struct {
	workers *pool.Pool
	results chan chan T // in order; each gets one result
	taken   chan struct{}
}

// New starts a queue with GOMAXPROCS goroutines for the work. Another one calls take. Call
// Wait after the last Do.
func New[T any](take func(T)) *Queue[T] { return NewOf(runtime.GOMAXPROCS(0), take) }

// NewOf is New with n goroutines, for work that needs much memory.
func NewOf[T any](n int, take func(T)) *Queue[T] {
	q := &Queue[T]{workers: pool.New().WithMaxGoroutines(n), results: make(chan chan T, n), taken: make(chan struct{})}
	go func() {
		defer close(q.taken)
		for result := range q.results {
			if value, ok := <-result; ok { // work that panicked has none; Wait panics again
				take(value)
			}
		}
	}()
	return q
}

// Do does work on another goroutine. It waits while too much work is in
// progress.
func (q *Queue[T]) Do(work func() T) {
	result := make(chan T, 1)
	q.results <- result
	q.workers.Go(func() {
		defer close(result)
		result <- work()
	})
}

// Wait waits until all results are taken.
func (q *Queue[T]) Wait() {
	close(q.results)
	defer func() { <-q.taken }()
	q.workers.Wait()
}
