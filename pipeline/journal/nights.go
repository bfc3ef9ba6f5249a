package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Nights are the finished datasets of a job, in the order in which each was finished first.
// A dataset that is made anew keeps its place.
type Nights struct {
	storage NightStorage
	out     string
	list    []Night
}

// Night is a finished dataset.
type Night struct {
	Out         string    `json:"out"` // as of DatasetName
	JobID       string    `json:"job_id"`
	CompletedAt time.Time `json:"completed_at"`
	Rows        int64     `json:"rows"`
	Matched     int64     `json:"matched"`
	Credits     *int64    `json:"credits,omitempty"` // of all its runs; nil without a service
}

// NightStorage is where the nights of a job are.
type NightStorage interface {
	Get() ([]byte, error) // fs.ErrNotExist without nights
	Put(data []byte) error
}

// maxNights bounds the nights that are kept: three years of them.
const maxNights = 1100

// ReadNights reads the nights of a job whose dataset is now at out, as of DatasetName.
func ReadNights(storage NightStorage, out string) (*Nights, error) {
	n := &Nights{storage: storage, out: out}
	data, err := storage.Get()
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &n.list); err != nil {
		return nil, fmt.Errorf("the state has a damaged list of finished datasets: %w; remove it to begin again", err)
	}
	return n, nil
}

func (n *Nights) place() int {
	return slices.IndexFunc(n.list, func(night Night) bool { return night.Out == n.out })
}

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

// Finished remembers the dataset at out.
func (n *Nights) Finished(night Night) error {
	if n == nil {
		return nil
	}
	night.Out = n.out
	if i := n.place(); i < 0 {
		n.list = append(n.list, night)
	} else if known := n.list[i]; known.JobID == night.JobID && known.CompletedAt.Equal(night.CompletedAt) {
		return nil
	} else {
		n.list[i] = night
	}
	n.list = n.list[max(0, len(n.list)-maxNights):]
	data, err := json.Marshal(n.list)
	if err != nil {
		return err
	}
	return n.storage.Put(append(data, '\n'))
}

// NightsName is the path of the nights of a job in its state, with slashes.
func NightsName(job string) string {
	sum := sha256.Sum256([]byte(job))
	return "nights/" + hex.EncodeToString(sum[:8]) + ".json"
}

// NightFile is a NightStorage on this disk.
type NightFile struct{ path string }

// NewNightFile names the file of a job in a state folder. It touches nothing.
func NewNightFile(stateDir, job string) NightFile {
	return NightFile{filepath.Join(stateDir, filepath.FromSlash(NightsName(job)))}
}

// Get is NightStorage's.
func (f NightFile) Get() ([]byte, error) { return os.ReadFile(f.path) }

// Put is NightStorage's.
func (f NightFile) Put(data []byte) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(f.path, data)
}
