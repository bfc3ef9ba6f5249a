package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/folder"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/answertable"
	"github.com/leadetl/leadetl/sinks/place"
)

const (
	tableSuffix  = ".parquet"
	rowsPerTable = 1_000_000
)

// exportTable writes the answers that a filter selects as Parquet files.
func (s *stored) exportTable(ctx context.Context, std cli.Streams, uri string, f answers.Filter) error {
	to, name, err := s.table(ctx, std, uri)
	if err != nil {
		return err
	}
	return s.read(ctx, std, func(contents *answers.Contents) error {
		ctx, stop := runview.Watch(ctx, std, "exporting", "answer", true)
		defer stop()
		if err := expect(ctx, contents, f); err != nil {
			return err
		}
		rows := int64(0) // one file has all
		if name == nil {
			rows = rowsPerTable
			if err := removeUnfinished(ctx, to); err != nil {
				return err
			}
		}
		written, err := answertable.Write(ctx, to, tableName(name), rows, counted(ctx, contents.List(ctx, f)))
		if err == nil && name == nil {
			err = to.Put(ctx, place.SuccessName, nil)
		}
		if err != nil {
			return err
		}
		stop()
		_, err = fmt.Fprintf(std.Out, "%s exported\n", figures.Plural(int(written), "answer"))
		return err
	})
}

// tableName names files: the one that the user names, or those of a folder.
func tableName(one *string) func(number int) string {
	return func(number int) string {
		if one != nil {
			return *one
		}
		return fmt.Sprintf("answers-%05d%s", number, tableSuffix)
	}
}

// table is the store to write to, and the name of the only file; nil for files in a folder, which has no finished
// export.
func (s *stored) table(ctx context.Context, std cli.Streams, uri string) (to store.Store, name *string, err error) {
	if strings.HasSuffix(uri, tableSuffix) {
		in, base := wire.InFolder(uri)
		name, uri = &base, in
	}
	o, err := wire.ReadOptions(ctx, uri, &s.s3, std.Warnings())
	if err != nil {
		return nil, nil, cli.UsageError(err)
	}
	if to, err = wire.Files("parquet", uri, o.Objects, folder.Private); err != nil || name != nil {
		return to, name, err
	}
	switch _, err := to.Read(ctx, place.SuccessName); {
	case err == nil:
		return nil, nil, cli.UsageError(fmt.Errorf("--parquet %s: an export is there; name another folder, or delete it", uri))
	case !store.IsMissing(err):
		return nil, nil, errors.Join(fmt.Errorf("--parquet %s", uri), err)
	}
	return to, nil, nil
}

// removeUnfinished removes the files of an export that was killed.
func removeUnfinished(ctx context.Context, from store.Store) error {
	entries, err := from.Entries(ctx, "")
	if store.IsMissing(err) {
		return nil
	}
	var names []string
	for _, info := range entries {
		if number := 0; strings.HasSuffix(info.Name, tableSuffix) {
			if _, err := fmt.Sscanf(info.Name, "answers-%d", &number); err == nil && info.Name == tableName(nil)(number) {
				names = append(names, info.Name)
			}
		}
	}
	return errors.Join(err, from.Remove(ctx, names...))
}
