package world

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution/service"
)

// TestFullDiskAtEachWrite: whatever write of a life is the one for which the disk has no room, the
// service goes on without a restart when there is room again.
func TestFullDiskAtEachWrite(t *testing.T) {
	template()
	each := 1
	if testing.Short() {
		each = 20
	}
	writes, full := 1, 0
	for nth := 1; nth <= writes; nth += each {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := worldtest.New(1, nil)
			p := newPlan(w, worldtest.Limits{Keys: 6})
			p.clients, p.administered, p.hasty, p.ill, p.failing, p.diskFails, p.diskSlow = 2, false, 0, 0, 0, 0, 0
			p.second, p.wrongClock, p.damaged = false, false, false
			h := newHistory(t, w, dir, p)
			defer h.unmount()
			h.found(t.Context())
			h.fullFrom = nth
			h.life(t.Context(), math.MaxInt)
			writes = h.writes
			if h.refused > 0 {
				full++
			}
			h.fullFrom = 0
			h.settle(t.Context())
			for _, wrong := range h.wrong {
				t.Errorf("full from write %d: %s", nth, wrong)
			}
		})
	}
	if t.Logf("%d of %d writes of a life", full, writes); full*each < writes/4 {
		t.Error("too few writes had no room")
	}
}

// fill lets the disk of the next life be full from one of its writes on, if it is to be.
func (h *history) fill() {
	h.disk.FullFrom, h.disk.FullFor = h.fullFrom, 3*time.Second
	if h.plan.fullDisk && !h.quiet && h.world.Below(4, "fills", h.lives) > 0 {
		h.disk.FullFrom = 1 + h.world.Below([]int{20, 100}[h.world.Below(2, "fills soon", h.lives)], "full from", h.lives)
		h.disk.FullFor = time.Duration(1+h.world.Below(20, "full for", h.lives)) * time.Second
	}
}

// troubled reports whether steps of this life failed that may fail on a bad machine.
func (h *history) troubled() bool {
	_, refused := h.disk.Full()
	return h.world.Faults() > 0 || refused > 0
}

// awaitRoom waits until a disk that is full has room again, and asks meanwhile whether the service is
// ready. It reports whether there was no room, and the machine lives.
func (h *history) awaitRoom(ctx context.Context, v *service.Service) bool {
	full, refused := h.disk.Full()
	if refused == 0 {
		return false
	}
	saw(aFullDisk)
	for full && ctx.Err() == nil {
		h.readiness(ctx, v)
		time.Sleep(100 * time.Millisecond)
		full, _ = h.disk.Full()
	}
	return ctx.Err() == nil
}

// awaitReadiness waits until a service whose disk has room again is ready.
func (h *history) awaitReadiness(ctx context.Context, v *service.Service) {
	saw(roomAgain)
	for began := time.Now(); ; time.Sleep(time.Second) {
		status, said := h.readiness(ctx, v)
		if status == http.StatusOK || h.world.Alive() != nil || h.world.Faults() > 0 {
			return
		}
		if time.Since(began) > soonReady {
			h.wrongly("there is room for %s, and the service is not ready: %d %s", time.Since(began), status, said)
			return
		}
	}
}

// soonReady is how soon a service whose disk has room again is ready.
const soonReady = 5 * time.Second

// readiness asks whether a service should get calls.
func (h *history) readiness(ctx context.Context, v *service.Service) (status int, said string) {
	w := httptest.NewRecorder()
	v.Public().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/readyz", nil))
	return w.Code, w.Body.String()
}
