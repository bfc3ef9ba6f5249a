package pace

import (
	"testing"
	"time"
)

// TestWrongConclusion: each time that refusals turn out not to come by chance, a trial waits for
// twice as many, and for two at least.
func TestWrongConclusion(t *testing.T) {
	for before, after := range map[int]int{0: 2, 1: 2, 2: 4, 4: 8} {
		c := chance{share: minShare, beyond: excess, patience: before}
		if !c.isLimit() || c.patience != after || c.share != 0 {
			t.Errorf("a patience of %d becomes %d, want %d", before, c.patience, after)
		}
	}
}

// TestRefusalByChance: a refusal that comes whatever the rate lets the rate grow back, once.
func TestRefusalByChance(t *testing.T) {
	for _, known := range []bool{false, true} {
		c := New(DefaultOptions())
		c.adaption.answered, c.adaption.refused = few, 7
		if c.chance.left = 1; known { // a trial is under way, or has ended so
			c.chance.left, c.chance.share = 0, maxShare
		}
		if isByChance := c.isByChance(time.Now()); !isByChance || (c.adaption.refused == 0) == known {
			t.Errorf("known %t: by chance %t, the refused rate is %g", known, isByChance, c.adaption.refused)
		}
	}
}
