package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Mark is a small file that says which format the data beside it has. It is written before
// any of the data, so data without it is in a format that is older than the mark.
type Mark struct {
	Where  string // the place of the data
	Reads  int    // the number that this program reads
	Advice string // about data in another format
	// Get reads the mark; fs.ErrNotExist without it. Put makes it durable. Holds reports
	// whether there is data.
	Get   func() ([]byte, error)
	Put   func([]byte) error
	Holds func() (bool, error)
}

// MarkName is the name of the file.
const MarkName = "format.json"

type mark struct {
	Format int `json:"format"`
}

// Check refuses data in another format. It changes nothing.
func (m Mark) Check() error {
	_, err := m.check()
	return err
}

// Begin is Check for who is about to write data: it writes the mark if it is missing.
func (m Mark) Begin() error {
	marked, err := m.check()
	if marked || err != nil {
		return err
	}
	text, err := json.Marshal(mark{m.Reads})
	if err != nil {
		return err
	}
	return m.Put(append(text, '\n'))
}

func (m Mark) check() (marked bool, err error) {
	text, err := m.Get()
	var found mark
	switch {
	case errors.Is(err, fs.ErrNotExist):
		holds, err := m.Holds()
		if err == nil && holds {
			err = Check(m.Where, 0, m.Reads, m.Advice)
		}
		return false, err
	case err != nil:
		return false, err
	case json.Unmarshal(text, &found) != nil || found.Format < 1:
		return false, fmt.Errorf("%s: %s is damaged: it does not say which format the data beside it has; put it back from a backup, or write {\"format\":%d} into it if this version wrote the data", m.Where, MarkName, m.Reads)
	}
	return true, Check(m.Where, found.Format, m.Reads, m.Advice)
}
