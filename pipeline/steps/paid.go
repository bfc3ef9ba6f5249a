package steps

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/exchange"
)

// The objects of a run that asks a service, beside those of every run. They hold
// personal data, and Finish removes them.
//
//	<run>/rows/<part>.rows             the rows of a part as they were read
//	<run>/keys/<part>.keys             its distinct keys
//	<run>/spread/<part>.json           how many those are; written last
//	<run>/waves/<wave>/lots.json       the parts of a wave, and how its keys are cut into lots
//	<run>/waves/<wave>/lots/<lot>      the keys of a lot, and which are to be asked
//	<run>/waves/<wave>/verdicts/<lot>  which of them have no answer, and why
//	<run>/waves/<wave>/attempts/<id>   what one process has asked
//	<run>/waves/<wave>/closed/<lot>    all its keys are asked, in a lane
//	<run>/waves/<wave>/asked.json      all lots are asked
//	<run>/waves/<wave>/slices/<lot>    what is known of its keys, for each part
//	<run>/waves/<wave>/counts/<lot>    how many of its keys were bought, stored and so on
//
// Each but the attempts is created once: what another process created first stays.

// ErrNotReady says that a step before this one is not done yet.
var ErrNotReady = errors.New("a step before this one is not done yet")

func rowsName(part int) string                 { return fmt.Sprintf("rows/%05d.rows", part) }
func keysName(part int) string                 { return fmt.Sprintf("keys/%05d.keys", part) }
func spreadName(part int) string               { return fmt.Sprintf("spread/%05d.json", part) }
func waveName(wave int) string                 { return fmt.Sprintf("waves/%04d/", wave) }
func lotsName(wave int) string                 { return waveName(wave) + "lots.json" }
func lotName(wave, lot int) string             { return fmt.Sprintf("%slots/%05d", waveName(wave), lot) }
func verdictsName(wave, lot int) string        { return fmt.Sprintf("%sverdicts/%05d", waveName(wave), lot) }
func askedName(wave int) string                { return waveName(wave) + "asked.json" }
func attemptsName(wave int) string             { return waveName(wave) + "attempts/" }
func attemptName(wave int, id string) string   { return attemptsName(wave) + id }
func countsName(wave, lot int) string          { return fmt.Sprintf("%scounts/%05d", waveName(wave), lot) }
func closedName(wave, lot int) string          { return fmt.Sprintf("%sclosed/%05d", waveName(wave), lot) }
func slicesName(wave, lot int) string          { return fmt.Sprintf("%sslices/%05d", waveName(wave), lot) }
func (r *Run) at(name string) objects.Location { return r.folder.At(r.Name(name)) }

// createJSON creates an object, unless there is one.
func (r *Run) createJSON(ctx context.Context, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return r.create(ctx, name, append(data, '\n'))
}

// create creates an object, unless there is one.
func (r *Run) create(ctx context.Context, name string, data []byte) error {
	return unlessCreated(r.folder.Create(ctx, r.Name(name), data))
}

// unlessCreated is err, or nil if another process created the object first.
func unlessCreated(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// has reports whether an object exists.
func (r *Run) has(ctx context.Context, name string) (bool, error) {
	_, err := r.folder.Store().Stat(ctx, r.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// spool collects the content of an object in a temporary file without a name.
type spool struct {
	file *os.File
	sum  interface {
		io.Writer
		Sum([]byte) []byte
	}
	size int64
}

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, ".object-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &spool{file: f, sum: sha256.New()}, nil
}

func (s *spool) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	s.size += int64(n)
	_, _ = s.sum.Write(p[:n]) // never fails
	return n, err
}

// create creates the object, unless there is one.
func (s *spool) create(ctx context.Context, r *Run, name string) error {
	c := objects.Content{ReaderAt: s.file, Size: s.size, SHA256: [sha256.Size]byte(s.sum.Sum(nil)), Type: "application/octet-stream"}
	return unlessCreated(r.folder.Store().Create(ctx, r.at(name), c))
}

func (s *spool) close() error { return s.file.Close() }

// openObject opens an object, to read some ranges of it.
func (r *Run) openObject(ctx context.Context, name string) (exchange.Object, func() error, error) {
	info, err := r.stat(ctx, name)
	if err != nil {
		return exchange.Object{}, nil, err
	}
	o, err := r.folder.Store().Open(ctx, info)
	if err != nil {
		return exchange.Object{}, nil, err
	}
	return exchange.Object{Name: info.Location.String(), ReaderAt: o.Ranges(), Size: o.Size}, o.Close, nil
}

// stat looks at an object that a step before this one has created.
func (r *Run) stat(ctx context.Context, name string) (objects.Info, error) {
	info, err := r.folder.Store().Stat(ctx, r.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %s is missing", ErrNotReady, r.at(name))
	}
	return info, err
}
