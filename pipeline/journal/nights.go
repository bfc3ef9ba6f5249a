package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/store"
)

// Nights are the finished datasets of a job, in the order in which each was finished first.
// A dataset that is made anew keeps its place.
type Nights struct {
	state *State
	ctx   context.Context // never cancelled
	name  string          // of the file in the state
	out   string
	list  []Night
}

// Night is a finished dataset, or one that is about to be published.
type Night struct {
	Out         string    `json:"out"` // as of DatasetName
	JobID       string    `json:"job_id"`
	CompletedAt time.Time `json:"completed_at"`
	Rows        int64     `json:"rows"`
	Matched     int64     `json:"matched"`
	Credits     *int64    `json:"credits,omitempty"` // of all its runs; nil without a service
}

// maxNights bounds the nights that are kept: three years of them.
const maxNights = 1100

const nightsFolder = "nights"

// Nights reads the nights of a job whose dataset is now at out, as of DatasetName.
func (s *State) Nights(ctx context.Context, job, out string) (*Nights, error) {
	return s.nights(ctx, nightsFolder+"/"+hashOf(job), out)
}

func (s *State) nights(ctx context.Context, name, out string) (*Nights, error) {
	n := &Nights{state: s, ctx: context.WithoutCancel(ctx), name: name, out: out}
	_, err := n.read()
	return n, err
}

// read reads the file; found is false without one.
func (n *Nights) read() (found bool, err error) {
	n.list = nil
	text, err := store.ReadListed(n.ctx, n.state.files, n.name)
	if store.IsMissing(err) && !errors.Is(err, appendlog.ErrDamaged) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n.list)
	}
	if err != nil {
		err = fmt.Errorf("the list of finished datasets in the state, %s: %w", n.state.files.Path(n.name), err)
	}
	return true, err
}

func (n *Nights) place() int {
	return slices.IndexFunc(n.list, func(night Night) bool { return night.Out == n.out })
}

// Any reports whether a dataset of the job was finished.
func (n *Nights) Any() bool { return n != nil && len(n.list) > 0 }

// Before is the dataset that was finished last before the one at out was finished first; nil
// if there is none.
func (n *Nights) Before() *Night {
	if n == nil {
		return nil
	}
	i := n.place()
	if i < 0 {
		i = len(n.list)
	}
	if i == 0 {
		return nil
	}
	before := n.list[i-1]
	return &before
}

// Finished remembers the dataset at out. Other jobs of the name may have finished theirs since
// the nights were read. What no read and no list shows may exist still: then it is store.ErrLate.
func (n *Nights) Finished(night Night) (err error) {
	if n == nil {
		return nil
	}
	turn, err := n.state.turn(n.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Release()) }()
	if err := n.state.mark(); err != nil {
		return err
	}
	found, err := n.read()
	if err != nil {
		return err
	}
	night.Out = n.out
	if i := n.place(); i < 0 {
		n.insert(night)
	} else if known := n.list[i]; known.JobID == night.JobID && known.CompletedAt.Equal(night.CompletedAt) {
		return nil
	} else {
		n.list[i] = night
	}
	text, err := json.Marshal(n.list)
	if err != nil {
		return err
	}
	if found {
		return store.PutSealed(n.ctx, n.state.files, n.name, text)
	}
	err = store.CreateSealed(n.ctx, n.state.files, n.name, text)
	if errors.Is(err, fs.ErrExist) {
		err = store.Unseen(n.state.files, n.name)
	}
	return err
}

// insert adds a night behind those that were finished before it. It may be remembered late: its
// run was killed after it had finished the dataset, and was repeated after the next night.
func (n *Nights) insert(night Night) {
	at := len(n.list)
	for at > 0 && n.list[at-1].CompletedAt.After(night.CompletedAt) {
		at--
	}
	n.list = slices.Insert(n.list, at, night)
	n.list = n.list[max(0, len(n.list)-maxNights):]
}
