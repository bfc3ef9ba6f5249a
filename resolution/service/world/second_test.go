package world

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/resolution/service/backup"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
)

// standBy is a second process that wants the state. It is refused by name while the first has it,
// and gets it when the first has ended; nil if the machine dies before.
func (h *history) standBy(ctx context.Context, got chan<- *sqlite.Store) {
	defer close(got)
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Duration(1 + h.world.Draw("stands by", h.lives, i)%uint64(2*time.Second)))
		if ctx.Err() != nil {
			return
		}
		if h.world.Below(3, "restores", h.lives, i) == 0 && h.serving.Load() {
			_, err := backup.Restore(ctx, filepath.Join(h.dir, sqlite.DatabaseName), h.dir, h.clock.Now())
			h.checkRefused("a restore", err)
			continue
		}
		has := h.serving.Load()
		s, err := sqlite.Serve(h.dir)
		switch {
		case err != nil && has:
			h.checkRefused("a second process", err)
		case err != nil && !errors.Is(err, filelock.ErrLocked):
			h.unexpected("take over", err)
		case err == nil && has:
			h.wrongly("two processes serve one state")
		}
		if err == nil {
			got <- s
			return
		}
	}
}

func (h *history) checkRefused(what string, err error) {
	saw(refusedSecond)
	if !errors.Is(err, filelock.ErrLocked) || !strings.Contains(err.Error(), h.dir) {
		h.wrongly("%s is not refused by the name of the folder: %v", what, err)
	}
}
