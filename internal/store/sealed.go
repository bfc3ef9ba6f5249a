package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/objects"
)

// PutSealed puts a small file as one record, so that damage is seen. Its name in the store is part of it.
func PutSealed(ctx context.Context, s Store, name string, data []byte) error {
	sealed, err := appendlog.Seal(name, data)
	if err == nil {
		err = s.Put(ctx, name, sealed)
	}
	return err
}

// CreateSealed is PutSealed of a file that is not there; fs.ErrExist if it is.
func CreateSealed(ctx context.Context, s Store, name string, data []byte) error {
	sealed, err := appendlog.Seal(name, data)
	if err == nil {
		err = s.Create(ctx, name, sealed)
	}
	return err
}

// ReadSealed reads what PutSealed has put; appendlog.ErrDamaged if it has changed.
func ReadSealed(ctx context.Context, s Store, name string) ([]byte, error) {
	_, _, data, err := readAt(ctx, s, name)
	return data, err
}

// readAt reads a record, with its position and the one behind it.
func readAt(ctx context.Context, s Store, name string) (at, next appendlog.Position, data []byte, err error) {
	sealed, err := s.Read(ctx, name)
	if errors.Is(err, objects.ErrChecksum) {
		err = fmt.Errorf("%w: %w", appendlog.ErrDamaged, err)
	}
	if err != nil {
		return at, next, nil, err
	}
	if at, next, data, err = appendlog.UnsealAt(name, sealed); err != nil {
		err = fmt.Errorf("%s: %w", s.Path(name), err)
	}
	return at, next, data, err
}

// readAtOnce bounds how many small files are read at a time.
const readAtOnce = 16

// Each calls do with each of some names, some at a time, until one fails.
func Each(ctx context.Context, names []string, do func(ctx context.Context, i int) error) error {
	doing := pool.New().WithContext(ctx).WithMaxGoroutines(readAtOnce).WithFirstError().WithCancelOnError()
	for i := range names {
		doing.Go(func(ctx context.Context) error { return do(ctx, i) })
	}
	return doing.Wait()
}

// AwaitSealed repeats a read of a sealed file that must exist, as Store.Await does. If it is missing, and
// still needed, that is damage.
func AwaitSealed(ctx context.Context, s Store, name string, needed func() (bool, error), read func() error) error {
	err := s.Await(ctx, name, needed, read)
	if !IsMissing(err) || errors.Is(err, appendlog.ErrDamaged) {
		return err
	}
	if still, other := needed(); still || other != nil {
		return errors.Join(appendlog.Missing(s.Path(name)), other)
	}
	return err
}

// ReadListed is ReadSealed of a file that may not exist; fs.ErrNotExist without it. If a list has it, it is
// awaited.
func ReadListed(ctx context.Context, s Store, name string) (data []byte, err error) {
	read := func() error {
		data, err = ReadSealed(ctx, s, name)
		return err
	}
	if err := read(); !IsMissing(err) {
		return data, err
	}
	listed := func() (bool, error) {
		for info, err := range s.List(ctx, name) {
			return err == nil && info.Name == name, err
		}
		return false, nil
	}
	if err = s.Await(ctx, name, listed, read); IsMissing(err) {
		err = missing(s, name) // it was not there, or is removed
	}
	return data, err
}

func missing(s Store, name string) error { return fmt.Errorf("%s: %w", s.Path(name), fs.ErrNotExist) }
