package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// seen counts what happened in worlds, so that a test can say that they reach it.
var seen = struct {
	sync.Mutex
	times map[string]int
}{times: map[string]int{}}

const (
	aFullDisk        = "a write has no room"
	roomAgain        = "there is room again under a service"
	refusedSecond    = "a second process is refused"
	aSecondTakesOver = "a second process takes over"
	clockAhead       = "the clock is set ahead"
	clockBack        = "the clock is set back"
	anExpiredKey     = "a key has expired"
	aForgottenKey    = "an idempotency key is forgotten"
	tooFast          = "an organization is too fast"
	tooMuchKept      = "an organization stores too much"
	foundDamage      = "damage is found"
	harmlessDamage   = "damage changes nothing"
	unseenDamage     = "damage is not seen"
	olderState       = "damage of the log brings an older state back"
	theBackup        = "a backup is put back"
)

func saw(what string) {
	seen.Lock()
	defer seen.Unlock()
	seen.times[what]++
}

// sights is what was seen, and how often.
func sights() (all string) {
	seen.Lock()
	defer seen.Unlock()
	for _, what := range slices.Sorted(maps.Keys(seen.times)) {
		all += fmt.Sprintf("; %s: %d", what, seen.times[what])
	}
	return strings.TrimPrefix(all, "; ")
}

// lived checks that a few seeds have reached what many reach often.
func lived(t *testing.T) {
	for _, what := range []string{refusedSecond, aSecondTakesOver, clockAhead, clockBack, anExpiredKey, aForgottenKey, tooFast, tooMuchKept, foundDamage, theBackup} {
		seen.Lock()
		if seen.times[what] == 0 {
			t.Errorf("never seen: %s", what)
		}
		seen.Unlock()
	}
}
