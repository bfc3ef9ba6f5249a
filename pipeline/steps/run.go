// Package steps makes a dataset in steps that many processes may take: survey
// the input, divide it into windows, make the parts of each window, finish.
//
// All that the processes share is in objects under STATE/runs/<id>/:
//
//	job                   the journal's header: settings, inputs, when the run was begun
//	<run>/survey/<file>   rows of an input file, and places in it
//	<run>/windows         the windows
//	<run>/parts/<part>    a recorded part
//	<run>/machines/<id>   how many steps a worker has done
//	<run>/beside/         what suppression lists hold, and what parts found of them
//
// Every step may be taken twice, also at the same time: it writes the same bytes
// again, or sees that it is done.
package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/parts"
)

// ErrNotBegun means that there is no run for the dataset: neither unfinished nor
// finished.
var ErrNotBegun = errors.New("no process has surveyed the input for this dataset")

// DefaultWindowBytes is about how many stored bytes of input a window has.
const DefaultWindowBytes = 128 << 20

// Run is a run whose steps may be taken by many processes. It is safe for
// concurrent use.
type Run struct {
	run    *job.Run
	state  *objectstate.State
	folder *journal.RunFolder
	begun  *begin.Decision
	job    jobFile
	tally  tally // of this process
}

// jobFile is the content of job. It is written once.
type jobFile struct {
	journal.Header
	WindowBytes int64 `json:"window_bytes"`
	// Earlier are the parts that an earlier run made, which stay.
	Earlier []int `json:"earlier,omitempty"`
}

const jobName = "job"

// Open begins the run of a dataset, or joins it. run has no Journal. The caller
// closes what run consists of.
func Open(ctx context.Context, run *job.Run, state *objectstate.State) (*Run, error) {
	return OpenSized(ctx, run, state, DefaultWindowBytes)
}

// OpenSized is Open for windows of about so many bytes of input. Only the process
// that begins the run decides on them.
func OpenSized(ctx context.Context, run *job.Run, state *objectstate.State, windowBytes int64) (*Run, error) {
	r, err := openOrReplace(ctx, run, state)
	if !errors.Is(err, ErrNotBegun) {
		return r, err
	}
	lease, err := r.folder.Claim(ctx)
	if err != nil {
		if again, joinErr := open(ctx, run, state); joinErr == nil { // other processes have begun it, and joined it
			return again, nil
		}
		return nil, err
	}
	if r, err = openOrReplace(ctx, run, state); errors.Is(err, ErrNotBegun) { // no other process was faster
		err = r.begin(ctx, windowBytes)
	}
	return r, errors.Join(err, lease.Release())
}

// openOrReplace is open. With Overwrite, an unfinished run of another job, or with
// another input, counts as not begun: it is replaced.
func openOrReplace(ctx context.Context, run *job.Run, state *objectstate.State) (*Run, error) {
	r, err := open(ctx, run, state)
	if run.Overwrite && (errors.Is(err, begin.ErrOtherJob) || errors.Is(err, cut.ErrInputChanged)) {
		r.job = jobFile{}
		return r, ErrNotBegun
	}
	return r, err
}

// Join joins the run of a dataset that Open has begun. If the dataset is already
// finished, the steps do nothing. Without both, the error is ErrNotBegun.
func Join(ctx context.Context, run *job.Run, state *objectstate.State) (*Run, error) {
	r, err := open(ctx, run, state)
	if err != nil && !errors.Is(err, ErrNotBegun) {
		return nil, err
	}
	if err == nil {
		return r, nil
	}
	if r.begun, err = begin.Join(ctx, r.run, nil); err != nil {
		return nil, err
	}
	if !r.begun.IsFinished() {
		return nil, ErrNotBegun
	}
	return r, nil
}

// open reads the job. If it is missing, the error is ErrNotBegun, and the Run can
// begin it.
func open(ctx context.Context, run *job.Run, state *objectstate.State) (*Run, error) {
	if run.Job.Sample > 0 {
		return nil, &job.Error{Err: errors.New("a sample is spread over the whole input, which is read in one piece; leave out --sample, or use leadetl run")}
	}
	own := *run
	runs := journal.OnS3(state)
	folder, err := runs.RunFolder(run.Output.Dir())
	if err != nil {
		return nil, err
	}
	r := &Run{run: &own, state: state, folder: folder}
	own.Journal = func(out string) (journal.Storage, error) {
		other, err := runs.RunFolder(out)
		of := &Run{folder: other}
		if other.ID() == r.folder.ID() {
			of = r
		}
		return &storage{ctx: context.WithoutCancel(ctx), run: of}, err
	}
	data, err := r.folder.Get(ctx, jobName)
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrNotBegun
	}
	if err != nil {
		return nil, err
	}
	if err := decode(r.folder.Path(jobName), data, &r.job); err != nil {
		return nil, err
	}
	r.begun, err = begin.Join(ctx, r.run, &r.job.Header)
	return r, err
}

// begin decides what the run makes, and writes the job.
func (r *Run) begin(ctx context.Context, windowBytes int64) (err error) {
	if r.begun, err = begin.Begin(ctx, r.run, nil); err != nil || r.begun.IsFinished() {
		return err
	}
	if r.begun.Finished != nil && !r.begun.SameInputs() {
		r.begun.Recorded = nil // their rows are not read again, and so not compared
	}
	if err := r.folder.Remove(ctx, "", ""); err != nil { // what processes of an earlier run wrote after its end
		return err
	}
	r.job = jobFile{Header: r.begun.Header, WindowBytes: windowBytes}
	return parts.NewLog(r.begun).BeginJournal()
}

// Finished reports whether the dataset is complete, so that all steps but Finish
// are done.
func (r *Run) Finished() bool { return r.begun.IsFinished() }

// Header says when the run was begun, and names it.
func (r *Run) Header() journal.Header { return r.job.Header }

// Folder has the objects of the run.
func (r *Run) Folder() *journal.RunFolder { return r.folder }

// Name returns the name of an object of this run in Folder. Objects of an earlier
// run for the same dataset have other names, so a process of that one does no
// harm if it is still alive.
func (r *Run) Name(name string) string { return r.job.Run + "/" + name }

// putJSON writes an object of the run.
func (r *Run) putJSON(ctx context.Context, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return r.folder.Put(ctx, r.Name(name), append(data, '\n'))
}

// getJSON reads an object of the run; fs.ErrNotExist without it.
func (r *Run) getJSON(ctx context.Context, name string, into any) error {
	data, err := r.folder.Get(ctx, r.Name(name))
	if err != nil {
		return err
	}
	return decode(r.folder.Path(r.Name(name)), data, into)
}

func decode(at string, data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// partsIn is the journal of the parts of a window.
func (r *Run) partsIn(ctx context.Context, w job.Window) *storage {
	return &storage{ctx: context.WithoutCancel(ctx), run: r, first: w.First, parts: w.Parts}
}

func partName(number int) string { return fmt.Sprintf("parts/%05d", number) }

// Holder is the holder of the lock of the dataset at out, which the processes of a
// run share.
func Holder(state *objectstate.State, out string) (objects.Holder, error) {
	folder, err := journal.OnS3(state).RunFolder(out)
	return objects.Holder{Name: folder.String() + "steps"}, err
}
