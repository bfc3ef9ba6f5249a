package journal

import (
	"errors"
	"io/fs"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// StateMark is the mark of a state in a folder.
func StateMark(root disk.Folder) format.Mark {
	m := answers.StateMark(root.Path("."))
	m.Get = func() ([]byte, error) { return root.ReadFile(format.MarkName) }
	m.Put = func(text []byte) error {
		if _, err := root.Make(0o700); err != nil {
			return err
		}
		return atomicfile.WriteIn(root, format.MarkName, text)
	}
	m.Holds = func() (bool, error) {
		for _, name := range answers.MarkedFolders {
			names, err := disk.Names(root.In(name))
			if len(names) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
				return len(names) > 0, err
			}
		}
		return false, nil
	}
	return m
}
