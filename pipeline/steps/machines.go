package steps

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/pipeline/report"
)

// tally counts what one process has done of a run since it opened it, for the
// report. It is stored under <run>/machines/.
type tally struct {
	mu      sync.Mutex
	name    string // of the object; "" counts nothing
	content tallyFile
}

// tallyFile is the content of the object. It has no name of a machine.
type tallyFile struct {
	Process string           `json:"process"` // a random id
	Since   time.Time        `json:"since"`
	Steps   map[string]int64 `json:"steps"` // done
	Busy    time.Duration    `json:"busy"`
}

const machinesName = "machines/"

// TakePart counts the steps of this process from now on. process is a random id,
// the same for each time that it opens the run.
func (r *Run) TakePart(ctx context.Context, process string) error {
	if r.Finished() {
		return nil
	}
	t := &r.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	t.name = machinesName + uuid.NewString()
	t.content = tallyFile{Process: process, Since: time.Now().UTC(), Steps: map[string]int64{}}
	return r.putJSON(ctx, t.name, t.content)
}

// Worked counts a step that was done. It does nothing before TakePart and after
// the run is finished: a process that was late leaves nothing behind.
func (r *Run) Worked(ctx context.Context, step string, took time.Duration) error {
	t := &r.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.name == "" {
		return nil
	}
	t.content.Steps[step]++
	t.content.Busy += took
	if begun, err := r.folder.Has(ctx, jobName); !begun || err != nil {
		return err
	}
	return r.putJSON(ctx, t.name, t.content)
}

// machines adds up the tallies of each process, in the order in which they began.
func (r *Run) machines(ctx context.Context) (all []report.Machine, err error) {
	names, err := r.folder.List(ctx, r.Name(machinesName))
	if err != nil {
		return nil, err
	}
	read, err := r.folder.GetAll(ctx, names)
	if err != nil {
		return nil, err
	}
	files := make([]tallyFile, len(read))
	for i, data := range read {
		if err := decode(r.folder.Path(names[i]), data, &files[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b tallyFile) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Process, b.Process))
	})
	number := map[string]int{}
	var busy []time.Duration
	for _, f := range files {
		n, found := number[f.Process]
		if !found {
			n, number[f.Process] = len(all), len(all)
			all = append(all, report.Machine{Number: len(all) + 1, Steps: map[string]int64{}})
			busy = append(busy, 0)
		}
		for step, done := range f.Steps {
			all[n].Steps[step] += done
		}
		busy[n] += f.Busy
		all[n].BusySeconds = report.Seconds(busy[n])
	}
	return all, nil
}
