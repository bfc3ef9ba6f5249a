package callback

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// TestOwnDeadReceivers: an organization's receiver that answers is served, however few
// attempts there may be, and however many deliveries to dead receivers came before.
func TestOwnDeadReceivers(t *testing.T) {
	for _, c := range []struct {
		concurrency, dead int
		late              time.Duration // at most
	}{
		{2, 1, slowAfter}, {4, 1, slowAfter}, {8, 1, slowAfter}, {64, 1, slowAfter}, {64, 8, slowAfter}, {4, 3, 30 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d slots, %d dead", c.concurrency, c.dead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, m := new(internet), newMemory()
				n.serve("well.example.com", status(http.StatusNoContent))
				b := runIn(t, n, m, func(o *Options) { o.Concurrency = c.concurrency })
				for i := range c.dead {
					for range 20 {
						b.post(fmt.Sprintf("dead%d.example.com", i))
					}
				}
				time.Sleep(100 * time.Millisecond)
				posted := map[int64]time.Time{}
				for range 60 {
					posted[b.post("well.example.com")] = time.Now()
					time.Sleep(time.Second)
				}
				time.Sleep(c.late)
				b.stop()
				arrived := 0
				for _, r := range b.settled() {
					if at, is := posted[r.ID]; is && r.State == state.Delivered {
						if arrived++; r.At.Sub(at) > c.late {
							t.Errorf("delivery %d came after %v", r.ID, r.At.Sub(at))
						}
					}
				}
				if arrived != len(posted) {
					t.Errorf("%d of %d arrived", arrived, len(posted))
				}
			})
		})
	}
}
