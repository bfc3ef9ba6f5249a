package store

import (
	"context"
	"errors"
	"io"
)

// DamagedSuffix ends the name of a damaged file that was set aside.
const DamagedSuffix = ".damaged"

// SetAside copies damaged files, before others take their places. It returns the paths of the copies: a file that
// is missing has none.
func SetAside(ctx context.Context, s Store, names ...string) (paths []string, err error) {
	for _, name := range names {
		switch err := setAside(ctx, s, name); {
		case err == nil:
			paths = append(paths, s.Path(name+DamagedSuffix))
		case !IsMissing(err):
			return paths, err
		}
	}
	return paths, nil
}

func setAside(ctx context.Context, s Store, name string) (err error) {
	from, err := s.Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := s.Begin(ctx, name+DamagedSuffix)
	if err != nil {
		return err
	}
	if _, err = io.Copy(to, io.NewSectionReader(from, 0, from.Size)); err == nil { // by range: a whole read compares the checksum
		err = to.Flush()
	}
	if err != nil {
		return errors.Join(err, to.Abort())
	}
	_, err = to.Commit()
	return err
}
