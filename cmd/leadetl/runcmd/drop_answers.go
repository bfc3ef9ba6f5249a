package runcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// dropAnswers writes the responses to consumer deletion lists of California's
// Delete Request and Opt-out Platform (DROP): for each list a file with the same
// name, and an ID and a status in each row.
// Source: privacy.ca.gov, DROP technical specifications, 1.2.0.
type dropAnswers struct {
	folder  string
	reading sources.Options // how lists are opened
	lists   []sources.File
}

// The statuses that a run can determine. People decide on exempt data (2) and
// on several people who opted out together (4).
const (
	dropDeleted  = "3"
	dropNotFound = "5"
)

// dropName matches the names of the platform's lists. A response has the name of
// its list, so a renamed list cannot be answered.
var dropName = regexp.MustCompile(`^[0-9]{8}_[0-9]{4}_([A-Za-z]+)(?:_[A-Za-z0-9]{1,10})?\.csv$`)

// openDropAnswers finds the lists to answer among those of --suppress.
func openDropAnswers(ctx context.Context, folder string, uris []string, reading sources.Options) (*dropAnswers, error) {
	d := &dropAnswers{folder: folder, reading: reading}
	named := map[string]string{}
	for _, uri := range uris {
		if info, err := os.Stat(uri); err == nil && !info.Mode().IsRegular() {
			continue // a pipe can be read only once
		}
		list, err := wire.OpenInput(ctx, []string{uri}, reading)
		if err != nil {
			return nil, err
		}
		files := list.Files()
		if err := list.Close(); err != nil {
			return nil, err
		}
		for _, file := range files {
			if len(file.Columns) != 2 || !strings.EqualFold(file.Columns[0], "ID") || !strings.EqualFold(file.Columns[1], "Hash") {
				continue // not a DROP list
			}
			name := d.name(file)
			switch parts := dropName.FindStringSubmatch(name); {
			case parts == nil:
				return nil, fmt.Errorf("--drop-answers: %s has the columns of a DROP list, but not the name of one, such as 20260801_1234_Email.csv; rename it back, because its response gets the same name", file.URI)
			case parts[1] != "Email" && parts[1] != "Phone":
				return nil, fmt.Errorf("--drop-answers: %s is a list of %s; runs compare emails and phones only: remove it from --suppress and answer it by hand", file.URI, parts[1])
			case named[name] != "":
				return nil, fmt.Errorf("--drop-answers: %s and %s have the same name, so their responses would too; rename one", named[name], file.URI)
			}
			named[name] = file.URI
			if sameFile(file.URI, filepath.Join(folder, name)) {
				return nil, fmt.Errorf("--drop-answers: the response to %s would overwrite it; use another folder", file.URI)
			}
			d.lists = append(d.lists, file)
		}
	}
	if len(d.lists) == 0 {
		return nil, errors.New("--drop-answers: no list in --suppress is a DROP list (a CSV file with the columns ID and Hash)")
	}
	return d, nil
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// name is the name of a list and its response, without the suffix of compression.
func (d *dropAnswers) name(list sources.File) string {
	name := filepath.Base(list.URI)
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return name
}

// present reports whether every list has its response.
func (d *dropAnswers) present() bool {
	for _, list := range d.lists {
		if _, err := os.Stat(filepath.Join(d.folder, d.name(list))); err != nil {
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
			return fmt.Errorf("answer %s: %w", list.URI, err)
		}
	}
	return nil
}

// answer reads a list again and writes its response. IDs with an invalid hash are
// left out.
func (d *dropAnswers) answer(ctx context.Context, file sources.File, found suppression.Found) (err error) {
	list, err := wire.OpenInput(ctx, []string{file.URI}, d.reading)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	if now := list.Files()[0]; now.Size != file.Size || !now.ModTime.Equal(file.ModTime) {
		return sources.ErrChanged // the run may not have checked the people on it now
	}
	reader, err := list.Reader(file.Columns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	to, err := atomicfile.Create(filepath.Join(d.folder, d.name(file)))
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
