package runcmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// dropAnswers writes the responses to consumer deletion lists of California's
// Delete Request and Opt-out Platform (DROP): for the newest list of each kind a file
// with the same name, and an ID and a status in each row.
// Source: privacy.ca.gov, DROP technical specifications, 1.2.0.
type dropAnswers struct {
	folder string
	lists  []dropList
}

// dropList is a list that is answered. A later download has new identifiers only, so older lists
// suppress and have had their responses.
type dropList struct {
	*sources.List // of the file alone
	file          sources.File
	name          string // of the list and its response
	kind, time    string
}

// The statuses that a run can determine. People decide on exempt data (2) and
// on several people who opted out together (4).
const (
	dropDeleted  = "3"
	dropNotFound = "5"
)

// dropName matches the names of the platform's lists: time and kind. A response has the name of
// its list, so a renamed list cannot be answered.
var dropName = regexp.MustCompile(`^([0-9]{8}_[0-9]{4})_([A-Za-z]+)(?:_[A-Za-z0-9]{1,10})?\.csv$`)

// openDropAnswers finds the lists to answer among those of --suppress.
func openDropAnswers(ctx context.Context, folder string, suppress *wire.Suppress, log *slog.Logger) (*dropAnswers, error) {
	d := &dropAnswers{folder: folder}
	for _, uri := range suppress.Lists {
		if info, err := os.Stat(uri); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			continue // a pipe can be read only once
		}
		if reads, err := sources.WouldRead(uri, folder, "*.csv"); err != nil || reads {
			return nil, cmp.Or(err, fmt.Errorf("--drop-answers: the next run would read the responses in %s as lists of --suppress %s; use another folder", folder, uri))
		}
		list, err := suppress.OpenLists(ctx, uri)
		if err != nil {
			return nil, err
		}
		for _, list := range list.ByFile() {
			if err := d.add(list); err != nil {
				return nil, err
			}
		}
	}
	if len(d.lists) == 0 {
		return nil, errors.New("--drop-answers: no list in --suppress is a DROP list (a CSV file with the columns ID and Hash)")
	}
	return d, d.choose(log)
}

// add adds a list if it is one of the platform.
func (d *dropAnswers) add(list *sources.List) error {
	file := list.Files()[0]
	if len(file.Columns) != 2 || !strings.EqualFold(file.Columns[0], "ID") || !strings.EqualFold(file.Columns[1], "Hash") {
		return nil
	}
	name := path.Base(filepath.ToSlash(file.URI))
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	parts := dropName.FindStringSubmatch(name)
	if parts == nil {
		return fmt.Errorf("--drop-answers: %s has the columns of a DROP list, but not the name of one, such as 20260801_1234_Email.csv; rename it back, because its response gets the same name", file.URI)
	}
	d.lists = append(d.lists, dropList{list, file, name, parts[2], parts[1]})
	return nil
}

// choose keeps the newest lists of each kind that runs compare.
func (d *dropAnswers) choose(log *slog.Logger) error {
	newest := map[string]string{}
	for _, l := range d.lists {
		newest[l.kind] = max(newest[l.kind], l.time)
	}
	d.lists = slices.DeleteFunc(d.lists, func(l dropList) bool { return l.time < newest[l.kind] })
	compared := func(l dropList) bool { return l.kind == "Email" || l.kind == "Phone" }
	if first := d.lists[0]; !slices.ContainsFunc(d.lists, compared) {
		return fmt.Errorf("--drop-answers: %s is a list of %s; runs compare emails and phones only: remove it from --suppress and answer it by hand", first.file.URI, first.kind)
	}
	named := map[string]string{}
	for _, l := range d.lists {
		switch {
		case !compared(l):
			log.Warn("a DROP list is not answered, because runs compare emails and phones only; answer it by hand", "list", l.file.URI)
		case named[l.name] != "":
			return fmt.Errorf("--drop-answers: %s and %s have the same name, so their responses would too; leave one out if they are the same, or rename one", named[l.name], l.file.URI)
		case sameFile(l.file.URI, filepath.Join(d.folder, l.name)):
			return fmt.Errorf("--drop-answers: the response to %s would overwrite it; use another folder", l.file.URI)
		}
		named[l.name] = l.file.URI
	}
	d.lists = slices.DeleteFunc(d.lists, func(l dropList) bool { return !compared(l) })
	return nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// present reports whether every list has its response.
func (d *dropAnswers) present() bool {
	for _, list := range d.lists {
		if _, err := os.Stat(filepath.Join(d.folder, list.name)); err != nil {
			return false
		}
	}
	return true
}

// write writes all responses.
func (d *dropAnswers) write(ctx context.Context, found suppression.Found) error {
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return cli.UsageError(wire.FolderError("drop-answers", err))
	}
	for _, list := range d.lists {
		if err := d.answer(ctx, list, found); err != nil {
			return fmt.Errorf("answer %s: %w", list.file.URI, err)
		}
	}
	return nil
}

// answer reads a list again, unless it has changed, and writes its response. IDs with an invalid
// hash are left out.
func (d *dropAnswers) answer(ctx context.Context, list dropList, found suppression.Found) (err error) {
	reader, err := list.Reader(list.file.Columns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	to, err := atomicfile.Create(filepath.Join(d.folder, list.name), 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Abort()) }()
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, "Id,Status")
	for {
		batch, err := reader.Next(ctx, 0)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		for i := range batch.Len() {
			listed, ok := found.Digest(batch.Columns[1].Value(i))
			if !ok {
				continue
			}
			status := dropNotFound
			if listed {
				status = dropDeleted
			}
			fmt.Fprintf(out, "%s,%s\n", strings.TrimSpace(batch.Columns[0].Value(i)), status)
		}
		batch.Release()
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return to.Commit()
}
