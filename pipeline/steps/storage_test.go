package steps

import (
	"testing"

	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/journal/journaltest"
)

func TestStorage(t *testing.T) {
	folder, err := journal.OnS3(newMachines(t).state()).RunFolder("s3://leads/out/")
	if err != nil {
		t.Fatal(err)
	}
	run := &Run{folder: folder}
	run.job.Run = "run"
	journaltest.Lists(t, &storage{ctx: t.Context(), run: run})
}
