package place

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
)

// Enclosing returns the closest folder above this one with a dataset, finished or not;
// "" without one. A folder that may not be read counts as without one.
func (f *folder) Enclosing() (string, error) {
	above, err := f.in.Above()
	for ; above != nil && err == nil; above, err = above.Above() {
		if _, err := above.Stat(ManifestName); err == nil {
			return above.Path("."), nil
		}
		names, _ := disk.Names(above)
		if slices.ContainsFunc(names, partName.MatchString) {
			return above.Path("."), nil
		}
	}
	return "", err
}

// insideAtMost bounds how much Inside reads of each folder, so that a wrong folder, such
// as a home folder, is refused at once.
const insideAtMost = 1000

// Inside returns the path of a dataset in a folder below this one; "" without one. names
// are the files and folders to look at.
func (f *folder) Inside(names []string) (string, error) {
	for _, name := range names {
		found, looked := "", 0
		err := disk.Walk(f.in, name, func(file string, d fs.DirEntry, err error) error {
			if err == nil && path.Base(file) == ManifestName && file != ManifestName {
				found = f.Path(path.Dir(file))
				return fs.SkipAll
			}
			if looked++; looked == insideAtMost {
				return fs.SkipAll
			}
			return nil // what cannot be read is refused later, as a foreign file
		})
		if err != nil || found != "" {
			return found, err
		}
	}
	return "", nil
}

// Enclosing is like that of folder. A prefix that may not be read counts as without
// one.
func (b *bucket) Enclosing() (string, error) {
	key := strings.TrimSuffix(b.at.Key, "/")
	for key != "" {
		key = path.Dir(key)
		parent := objects.Location{Bucket: b.at.Bucket, Key: key + "/"}
		if key == "." {
			parent.Key, key = "", ""
		}
		found, err := b.holdsDataset(parent)
		var refused *objects.RefusedError
		switch {
		case errors.As(err, &refused):
			continue
		case err != nil:
			return "", err
		case found:
			return parent.String(), nil
		}
	}
	return "", nil
}

// holdsDataset reports whether a manifest or a part is directly in a prefix.
func (b *bucket) holdsDataset(at objects.Location) (bool, error) {
	if _, err := b.store.Stat(b.ctx, at.Below(ManifestName)); !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	for info, err := range b.store.List(b.ctx, at.Below("part-")) {
		if err != nil {
			return false, err
		}
		if partName.MatchString(strings.TrimPrefix(info.Key, at.Key)) {
			return true, nil
		}
		break // the keys of our parts come first: part-00000
	}
	return false, nil
}

// Inside is like that of folder. It looks at the first keys of each folder.
func (b *bucket) Inside(names []string) (string, error) {
	for _, name := range names {
		looked := 0
		for info, err := range b.store.List(b.ctx, b.at.Below(name)) {
			if err != nil {
				return "", err
			}
			if below := strings.TrimPrefix(info.Key, b.at.Key); path.Base(below) == ManifestName && below != ManifestName {
				return objects.Location{Bucket: b.at.Bucket, Key: strings.TrimSuffix(info.Key, ManifestName)}.String(), nil
			}
			if looked++; looked == insideAtMost {
				break
			}
		}
	}
	return "", nil
}
