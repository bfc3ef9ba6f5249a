package runcmd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/folder"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// dropAnswers writes the responses to consumer deletion lists of California's
// Delete Request and Opt-out Platform (DROP): for the newest list of each kind a file
// with the same name, and an ID and a status in each row.
// Source: privacy.ca.gov, DROP technical specifications, 1.2.0.
type dropAnswers struct {
	to    store.Store
	lists []dropList
	// written says that every list has its response.
	written bool
}

// dropList is a list that is answered. A later download has new identifiers only, and is there only
// when the one before has all its responses: so older lists suppress, and no more.
type dropList struct {
	wire.DropList
	file sources.File
	name string // of the list and its response
	date string
	of   string // data broker and kind
	kind string
}

// compared reports whether runs compare identifiers of this kind.
func (l dropList) compared() bool { return l.kind == "Email" || l.kind == "Phone" }

// The statuses that a run can determine. People decide on exempt data (2) and
// on several people who opted out together (4).
const (
	dropDeleted  = "3"
	dropNotFound = "5"
)

// dropName matches the names of the platform's lists: date, data broker and kind, and a suffix of who
// divides a response. A response has the name of its list, so a renamed list cannot be answered.
var dropName = regexp.MustCompile(`^([0-9]{8})_([0-9]+_([A-Za-z]+))(?:_[A-Za-z0-9]{1,10})?\.csv$`)

// openDropAnswers finds the lists to answer among those that were read.
func openDropAnswers(ctx context.Context, uri string, objectStore *objects.Store, suppress []string, lists []wire.DropList, log *slog.Logger) (*dropAnswers, error) {
	for _, list := range suppress {
		if reads, err := sources.WouldRead(list, uri, "*.csv"); err != nil || reads {
			return nil, cmp.Or(err, fmt.Errorf("--drop-answers: the next run would read the responses in %s as lists of --suppress %s; use another folder", uri, list))
		}
	}
	to, err := wire.Files("drop-answers", uri, objectStore, folder.Private)
	if err != nil {
		return nil, err
	}
	d := &dropAnswers{to: to}
	for _, list := range lists {
		if err := d.add(list); err != nil {
			return nil, err
		}
	}
	if len(d.lists) == 0 {
		return nil, errors.New("--drop-answers: no list in --suppress is a DROP list (a CSV file with the columns ID and Hash)")
	}
	if err := d.choose(ctx, log); err != nil {
		return nil, err
	}
	return d, d.look(ctx)
}

// add adds a list by its name.
func (d *dropAnswers) add(list wire.DropList) error {
	file := list.Files()[0]
	name := path.Base(filepath.ToSlash(file.URI))
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	parts := dropName.FindStringSubmatch(name)
	if parts == nil {
		return fmt.Errorf("--drop-answers: %s has the columns of a DROP list, but not the name of one, such as 20260801_1234_Email.csv; rename it back, because its response gets the same name", file.URI)
	}
	d.lists = append(d.lists, dropList{list, file, name, parts[1], parts[2], parts[3]})
	return nil
}

// choose keeps the newest lists of each data broker and kind, if runs compare that kind. An empty one
// needs no response.
func (d *dropAnswers) choose(ctx context.Context, log *slog.Logger) error {
	newest := map[string]string{}
	for _, l := range d.lists {
		newest[l.of] = max(newest[l.of], l.date)
	}
	d.lists = slices.DeleteFunc(d.lists, func(l dropList) bool { return l.date < newest[l.of] })
	if first := d.lists[0]; !slices.ContainsFunc(d.lists, dropList.compared) {
		return fmt.Errorf("--drop-answers: %s is a list of %s; runs compare emails and phones only: remove it from --suppress and answer it by hand", first.file.URI, first.kind)
	}
	named := map[string]dropList{}
	for _, l := range d.lists {
		switch other, twice := named[l.name]; {
		case l.IsEmpty:
			log.Info("a DROP list has no new identifiers, so it needs no response", "list", l.file.URI)
		case !l.compared():
			log.Warn("a DROP list is not answered, because runs compare emails and phones only; answer it by hand", "list", l.file.URI)
		case sameFile(l.file.URI, d.to.Path(l.name)):
			return fmt.Errorf("--drop-answers: the response to %s would overwrite it; use another folder", l.file.URI)
		case twice:
			if same, err := other.equals(ctx, l); err != nil || !same {
				return cmp.Or(err, fmt.Errorf("--drop-answers: %s and %s have the same name and other identifiers, so one response would replace the other; give one a suffix, such as %s", other.file.URI, l.file.URI, strings.TrimSuffix(l.name, ".csv")+"_2.csv"))
			}
		default:
			named[l.name] = l
		}
	}
	d.lists = slices.SortedFunc(maps.Values(named), func(a, b dropList) int { return strings.Compare(a.name, b.name) })
	return nil
}

// equals reports whether two lists have the same rows.
func (l dropList) equals(ctx context.Context, other dropList) (bool, error) {
	var sums [2][]byte
	for i, list := range []dropList{l, other} {
		sum := sha256.New()
		err := list.each(ctx, func(id, digest string) { fmt.Fprintln(sum, id, digest) })
		if err != nil {
			return false, err
		}
		sums[i] = sum.Sum(nil)
	}
	return bytes.Equal(sums[0], sums[1]), nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return a == b || errX == nil && errY == nil && os.SameFile(x, y)
}

// look sees whether every list has its response.
func (d *dropAnswers) look(ctx context.Context) error {
	for _, list := range d.lists {
		o, err := d.to.Open(ctx, list.name)
		switch {
		case store.IsMissing(err):
			return nil
		case err == nil:
			err = o.Close()
		}
		if err != nil {
			return fmt.Errorf("--drop-answers: %w", err)
		}
	}
	d.written = true
	return nil
}

// write writes all responses.
func (d *dropAnswers) write(ctx context.Context, found suppression.Found) error {
	for _, list := range d.lists {
		if err := d.answer(ctx, list, found); err != nil {
			return fmt.Errorf("answer %s: %w", list.file.URI, err)
		}
	}
	d.written = true
	return nil
}

// answer writes the response to a list. IDs with an invalid hash are left out.
func (d *dropAnswers) answer(ctx context.Context, list dropList, found suppression.Found) (err error) {
	to, err := d.to.Begin(ctx, list.name)
	if err != nil {
		return wire.UnlessUnavailable(wire.FolderError("drop-answers", err))
	}
	defer func() { err = errors.Join(err, to.Abort()) }()
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, "Id,Status")
	err = list.each(ctx, func(id, digest string) {
		if listed, ok := found.Digest(digest); ok {
			status := dropNotFound
			if listed {
				status = dropDeleted
			}
			fmt.Fprintf(out, "%s,%s\n", strings.TrimSpace(id), status)
		}
	})
	if err = cmp.Or(err, out.Flush()); err != nil {
		return err
	}
	if err := to.Flush(); err != nil {
		return err
	}
	_, err = to.Commit()
	return err
}

// each reads a list again, unless it has changed.
func (l dropList) each(ctx context.Context, do func(id, digest string)) (err error) {
	reader, err := l.Reader(l.file.Columns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for {
		batch, err := reader.Next(ctx, 0)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range batch.Len() {
			do(batch.Columns[0].Value(i), batch.Columns[1].Value(i))
		}
		batch.Release()
	}
}
