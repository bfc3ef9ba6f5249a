package place

import (
	"errors"
	"io/fs"
	"path"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
)

// Enclosing returns the closest folder above the place with a dataset, finished
// or not; "" without one. A folder that may not be read counts as without one.
func (p *Place) Enclosing() (string, error) {
	type lower interface{ Above() (store.Store, error) }
	for files := p.files; ; {
		below, is := files.(lower)
		if !is {
			return "", nil
		}
		above, err := below.Above()
		if err != nil || above == nil {
			return "", err
		}
		if found, err := p.isDataset(above); err != nil && !isUnreadable(err) {
			return "", err
		} else if found {
			return above.String(), nil
		}
		files = above
	}
}

// isDataset reports whether a manifest or a part is directly in a folder.
func (p *Place) isDataset(files store.Store) (bool, error) {
	if o, err := files.Open(p.ctx, ManifestName); !store.IsMissing(err) {
		if err == nil {
			err = o.Close()
		}
		return err == nil, err
	}
	for info, err := range files.List(p.ctx, "part-") {
		return err == nil && partName.MatchString(info.Name), err // the names of our parts come first: part-00000
	}
	return false, nil
}

// isUnreadable reports whether an error says that a folder may not be read.
func isUnreadable(err error) bool {
	_, refused := errors.AsType[*objects.RefusedError](err)
	return refused || errors.Is(err, fs.ErrPermission)
}

// insideAtMost bounds how much Inside reads of each folder, so that a wrong folder, such
// as a home folder, is refused at once.
const insideAtMost = 1000

// Inside returns a finished dataset in a folder below the place; "" without one. names are the files and
// folders to look at. What cannot be read is refused later, as a foreign file.
func (p *Place) Inside(names []string) (string, error) {
	for _, name := range names {
		looked := 0
		for info, err := range p.files.List(p.ctx, name) {
			if looked++; looked == insideAtMost || isUnreadable(err) {
				break
			}
			if err != nil {
				return "", err
			}
			if path.Base(info.Name) == ManifestName && info.Name != ManifestName {
				return p.Path(info.Name[:len(info.Name)-len(ManifestName)]), nil
			}
		}
	}
	return "", nil
}
