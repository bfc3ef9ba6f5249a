package steps

import (
	"testing"

	"github.com/leadetl/leadetl/pipeline/journal/journaltest"
)

func TestStorage(t *testing.T) {
	run := &Run{folder: newMachines(t).state().RunFolder("s3://leads/out/")}
	run.job.Run = "run"
	journaltest.Lists(t, &storage{ctx: t.Context(), run: run})
}
