package longlock_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/longlock"
)

// TestLock: one goroutine at a time has the lock, for as long as it takes.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, lock := time.Now(), longlock.New()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				lock.Lock()
				defer lock.Unlock()
				time.Sleep(time.Second)
			})
		}
		all.Wait()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it takes %v", took)
		}
	})
}

// TestOnce: all callers wait for what is done once, and have its error.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times, failure := 0, errors.New("it fails")
		once := longlock.Once(func() error {
			time.Sleep(time.Second)
			times++
			return failure
		})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := once(); err != failure || times != 1 {
					t.Errorf("%v, done %d times", err, times)
				}
			})
		}
		all.Wait()
	})
}
