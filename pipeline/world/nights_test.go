package world

import (
	"errors"
	"io/fs"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/pipeline/journal"
)

// nights are where the finished datasets of a machine are listed.
type nights struct{ in disk.Folder }

var _ journal.NightStorage = nights{}

// String is that of journal.NightStorage.
func (n nights) String() string { return n.in.Path("nights.json") }

// Get is that of journal.NightStorage.
func (n nights) Get() ([]byte, error) {
	data, err := n.in.ReadFile("nights.json")
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return data, err
}

// Update is that of journal.NightStorage.
func (n nights) Update(change func(data []byte) ([]byte, error)) error {
	data, err := n.Get()
	if err == nil {
		data, err = change(data)
	}
	if err == nil && data != nil {
		_, err = n.in.Make(0o700)
	}
	if err != nil || data == nil {
		return err
	}
	return atomicfile.WriteIn(n.in, "nights.json", data)
}

// finish lists a run as the last night.
func (r *recorder) finish(now *run) error {
	n, err := journal.ReadNights(nights{r.listed}, now.header.Run)
	if err != nil {
		return err
	}
	night := journal.Night{JobID: now.header.JobID, CompletedAt: time.Now()}
	return r.night.store(&r.mu, now.header.Run, func() error { return n.Finished(night) })
}

// checkNights checks which night was the last.
func (r *recorder) checkNights() error {
	n, err := journal.ReadNights(nights{r.listed}, "the next one")
	if err != nil {
		return err
	}
	last := ""
	if before := n.Before(); before != nil {
		last = before.Out
	}
	if !r.night.mayBe(last) || n.Any() != (last != "") {
		r.wrongly("the last night is %q", last)
	}
	return nil
}
