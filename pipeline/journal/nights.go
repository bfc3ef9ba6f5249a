package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
)

// Nights are the finished datasets of a job, in the order in which each was finished first.
// A dataset that is made anew keeps its place.
type Nights struct {
	storage NightStorage
	out     string
	list    []Night
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

// NightStorage is where the nights of a job are: one record. Data without nights is empty.
type NightStorage interface {
	Get() ([]byte, error)
	// Update replaces the data by what change makes of it. Nil leaves it as it is.
	Update(change func(data []byte) ([]byte, error)) error
	String() string // for users
}

// maxNights bounds the nights that are kept: three years of them.
const maxNights = 1100

// ReadNights reads the nights of a job whose dataset is now at out, as of DatasetName.
func ReadNights(storage NightStorage, out string) (*Nights, error) {
	n := &Nights{storage: storage, out: out}
	data, err := storage.Get()
	if err != nil {
		return nil, err
	}
	return n, n.parse(data)
}

func (n *Nights) parse(data []byte) error {
	n.list = nil
	if len(data) == 0 {
		return nil
	}
	text, err := appendlog.Unseal(n.name(), data)
	if err == nil {
		err = json.Unmarshal(text, &n.list)
	}
	if err != nil {
		return fmt.Errorf("the list of finished datasets in the state, %s: %w", n.storage, err)
	}
	return nil
}

// name is that of the file, which has the hash of the job's name.
func (n *Nights) name() string { return path.Base(filepath.ToSlash(n.storage.String())) }

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
// the nights were read.
func (n *Nights) Finished(night Night) error {
	if n == nil {
		return nil
	}
	night.Out = n.out
	return n.storage.Update(func(data []byte) ([]byte, error) {
		if err := n.parse(data); err != nil {
			return nil, err
		}
		if i := n.place(); i < 0 {
			n.insert(night)
		} else if known := n.list[i]; known.JobID == night.JobID && known.CompletedAt.Equal(night.CompletedAt) {
			return nil, nil
		} else {
			n.list[i] = night
		}
		text, err := json.Marshal(n.list)
		if err != nil {
			return nil, err
		}
		return appendlog.Seal(n.name(), text)
	})
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

const nightsFolder = "nights"

// NightsName is the path of the nights of a job in its state, with slashes.
func NightsName(job string) string {
	sum := sha256.Sum256([]byte(job))
	return nightsFolder + "/" + hex.EncodeToString(sum[:8])
}

// NightFile is a NightStorage in a folder on a disk.
type NightFile struct {
	in   disk.Folder
	name string
}

// NewNightFile names the file of a job in the folder of a state. It touches nothing.
func NewNightFile(state disk.Folder, job string) NightFile {
	folder, name := path.Split(NightsName(job))
	return NightFile{state.In(folder), name}
}

// String is NightStorage's.
func (f NightFile) String() string { return f.in.Path(f.name) }

// Get is NightStorage's.
func (f NightFile) Get() ([]byte, error) {
	data, err := f.in.ReadFile(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return data, err
}

// Update is NightStorage's. It waits for other processes that do the same.
func (f NightFile) Update(change func(data []byte) ([]byte, error)) (err error) {
	if _, err := f.in.Make(0o700); err != nil {
		return err
	}
	lock, err := f.in.Lock()
	for tries := 0; errors.Is(err, filelock.ErrLocked) && tries < 500; tries++ {
		time.Sleep(10 * time.Millisecond)
		lock, err = f.in.Lock()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	data, err := f.Get()
	if err != nil {
		return err
	}
	if data, err = change(data); err != nil || data == nil {
		return err
	}
	return atomicfile.WriteIn(f.in, f.name, data)
}
