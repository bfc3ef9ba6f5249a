// Package longlock has locks that are held while a disk or a store takes its time. On the clock of
// synctest, which stands still while a goroutine waits for a sync.Mutex, that time passes.
package longlock

import "sync"

// Lock is a mutex.
type Lock chan struct{}

var _ sync.Locker = Lock(nil)

// New is a lock that nobody holds.
func New() Lock { return make(Lock, 1) }

// Lock is that of sync.Locker.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock is that of sync.Locker.
func (l Lock) Unlock() { <-l }

// Once returns a function that does something once. All calls return its error.
func Once(do func() error) func() error {
	lock, done, err := New(), false, error(nil)
	return func() error {
		lock.Lock()
		defer lock.Unlock()
		if !done {
			done = true
			err = do()
		}
		return err
	}
}
