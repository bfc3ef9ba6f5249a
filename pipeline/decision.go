package pipeline

import (
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/sinks"
	"golang.org/x/sync/semaphore"
)

// state is a run under way.
type state struct {
	*Run
	layout       *columns.Layout
	table        sinks.Table
	rejectsTable sinks.Table
	read         []string       // columns to read, the kept ones first
	kept         int            // how many of them are kept
	identifier   int            // which of them is resolved
	fields       map[string]int // those that hold the fields of searches
	asOf         time.Time      // the day that searches take for today, midnight UTC
	settings     []byte
	jobID        string
	journal      *journal
	known        map[int]sinks.Part // recorded by earlier runs, and still as recorded
	improving    bool               // there are recorded parts whose rows are asked again
	broken       bool               // there are recorded parts that are not as recorded
	before       *sinks.Manifest    // of the finished dataset that is there, if any
	unsealing    sync.Once          // done before the first part is begun
	unsealErr    error
	withdrawing  sync.Once // done before the first part is replaced
	withdrawErr  error
	withdrew     bool
	asking       *semaphore.Weighted // a place a question
	header       journalHeader       // of this run
	buyer        *purchase.Buyer     // nil without a Remote
	ended        <-chan struct{}     // closed when the run is to end

	mu       sync.Mutex
	parts    map[int]sinks.Part // known ones passed by, and made ones
	unsummed []int              // published parts that wait for their checksum
	fresh    sinks.Totals
	made     int
}

// prepare works out columns and identity and looks at what is there already.
func (r *Run) prepare() (*state, error) {
	s, err := r.describe()
	if err != nil {
		return nil, err
	}
	if r.Overwrite {
		if err := s.overwrite(); err != nil {
			return nil, err
		}
	}
	return s, s.lookBack()
}

// describe works out columns and identity. It changes nothing.
func (r *Run) describe() (*state, error) {
	s := &state{Run: r, parts: map[int]sinks.Part{}, asking: semaphore.NewWeighted(int64(r.Workers))}
	if err := s.chooseColumns(); err != nil {
		return nil, err
	}
	var err error
	if s.journal, err = newJournal(r.StateDir, r.Output.Dir()); err != nil {
		return nil, err
	}
	if err := s.settleDay(); err != nil {
		return nil, err
	}
	if s.settings, s.jobID, err = s.identity().encode(); err != nil {
		return nil, err
	}
	return s, nil
}

// complete reports whether the dataset is whole, and no input was touched
// since.
func (s *state) complete() bool {
	return s.before != nil && len(s.known) == len(s.before.Parts) && slices.EqualFunc(s.before.Inputs, s.inputs(), untouched)
}

// untouched reports whether an input looks as it did. Of standard input
// nothing is known before it is read.
func untouched(before, now sinks.Input) bool {
	return now.Bytes >= 0 && before.URI == now.URI && before.Bytes == now.Bytes && before.ModifiedAt.Equal(now.ModifiedAt) && before.ETag == now.ETag
}

func (s *state) inputs() []sinks.Input {
	var inputs []sinks.Input
	for _, f := range s.Input.Files() {
		inputs = append(inputs, sinks.Input{URI: f.URI, Bytes: f.Size, ModifiedAt: f.ModTime.UTC(), ETag: f.ETag})
	}
	return inputs
}
