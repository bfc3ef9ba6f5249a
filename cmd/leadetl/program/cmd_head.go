package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/lines"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sinks/typed"
)

// headFlags are the flags of head.
type headFlags struct {
	rows     int
	selected []string
	asJSON   bool
	s3       wire.S3
}

func newHeadCommand(std cli.Streams) *cobra.Command {
	var f headFlags
	c := &cobra.Command{
		Use:   "head DATASET",
		Short: "Print the first rows of a dataset",
		Long: `Print the first rows of a finished dataset, as a table or as JSON Lines.

The table fits the terminal: long values are cut, columns that say where a row
comes from are last, and columns that do not fit, or have no value in these
rows, are named below it; --select shows all that it names. So are the rows of
the dataset and what all runs have paid for it. JSON Lines have every column, in
the order of the files, with numbers and lists as such.

DATASET may also be the _changes, _rejects, _suppressed or _asked of a dataset,
or what leadetl changes has written.

What is printed is the data of the dataset, and so personal data.`,
		Example: `  leadetl head out/hems
  leadetl head out/leads -n 3 --select email,phones
  leadetl head out/leads/_changes
  leadetl head s3://leads/hems/ --json | jq .hem_sha256`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: "S3 out of reach; run the same command later", cli.ExitInterrupted: "interrupted"}),
		Args:        oneDataset,
		RunE:        func(c *cobra.Command, args []string) error { return f.run(c.Context(), args[0], std) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.IntVarP(&f.rows, "rows", "n", 10, "`number` of rows")
	flags.StringSliceVar(&f.selected, "select", nil, "`columns` to print, in this order, and groups of those not named: all, input, answers, flat (default: all)")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON Lines, an object for each row")
	f.s3.RegisterReading(flags)
	return c
}

func (f *headFlags) run(ctx context.Context, dataset string, std cli.Streams) error {
	if f.rows < 1 {
		return cli.UsageError(fmt.Errorf("--rows is %d; it must be at least 1", f.rows))
	}
	opened, dataset, err := openNight(ctx, dataset, &f.s3, std.Log())
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	m, err := sinks.ReadManifest(opened)
	beside := errors.Is(err, sinks.ErrNoDataset)
	if beside {
		m, err = tableBeside(ctx, opened, err)
	}
	if err != nil {
		return wire.UnlessUnavailable(fmt.Errorf("%s: %w", dataset, err))
	}
	scan, err := m.NewScan(f.selected, nil)
	if err != nil {
		return cli.UsageError(fmt.Errorf("%s: %w", dataset, err))
	}
	if f.asJSON {
		return printJSON(ctx, std.Out, opened, m, scan, f.rows)
	}
	h := &head{columns: scan.Columns, asked: len(f.selected) > 0, beside: beside}
	if err := h.read(ctx, opened, m, scan, f.rows); err != nil {
		return err
	}
	return h.printTable(std.Out, cmp.Or(cli.Width(std.Out), 100), m)
}

// printJSON prints the first n rows as JSON Lines.
func printJSON(ctx context.Context, to io.Writer, dataset *sinks.Reader, m *sinks.Manifest, s *sinks.Scan, n int) (err error) {
	asJSON := lines.NewJSON(schema.Names(s.Columns))
	var text []byte
	read := m.Rows(ctx, dataset, s, min(n, typed.BatchRows), func(rows []arrow.Array, some int) bool {
		defer typed.Release(rows)
		some = min(some, n)
		n -= some
		text = asJSON.Append(text[:0], rows, some)
		_, err = to.Write(text)
		return err == nil && n > 0
	})
	return errors.Join(err, read)
}

// tableBeside describes a finished table that has no manifest of its own: a folder in a dataset
// whose name begins with _, or the output of leadetl changes. The error of another folder is
// noDataset.
func tableBeside(ctx context.Context, folder *sinks.Reader, noDataset error) (*sinks.Manifest, error) {
	if !strings.HasPrefix(path.Base(filepath.ToSlash(folder.Dir())), "_") {
		if _, err := folder.ReadFile(sinks.SuccessName); err != nil {
			return nil, noDataset
		}
	}
	names, err := folder.List(ctx)
	if err != nil {
		return nil, err
	}
	m := new(sinks.Manifest)
	slices.Sort(names)
	for _, name := range names {
		if isPart, err := path.Match("part-*.parquet", name); err != nil || !isPart {
			continue
		}
		if err := addFile(m, folder, name); err != nil {
			return nil, err
		}
	}
	if m.Parts == nil {
		return nil, noDataset
	}
	return m, nil
}

// addFile adds a file to the manifest of a table. Its columns are those of the first file.
func addFile(m *sinks.Manifest, folder *sinks.Reader, name string) (err error) {
	opened, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	r, err := typed.Open(folder.Path(name), opened, opened.Size)
	if err != nil {
		return err
	}
	if m.Parts == nil {
		for _, e := range r.Root {
			m.Schema = append(m.Schema, e.Column())
		}
	}
	rows := int64(0)
	for group := range r.Groups() {
		rows += r.Rows(group)
	}
	m.Parts = append(m.Parts, sinks.Part{File: sinks.File{Name: name, Rows: rows}})
	m.Totals.Rows += rows
	return nil
}

// head holds the first rows of a dataset.
type head struct {
	columns []schema.Column
	rows    [][]cell
	asked   bool // the user selected these columns, in this order
	beside  bool // it is a table such as _changes, not a dataset
}

// cell is a value as text; nil means null.
type cell *string

// read reads the first n rows, in the order of the parts.
func (h *head) read(ctx context.Context, dataset *sinks.Reader, m *sinks.Manifest, s *sinks.Scan, n int) error {
	return m.Rows(ctx, dataset, s, min(n, typed.BatchRows), func(rows []arrow.Array, some int) bool {
		defer typed.Release(rows)
		some = min(some, n-len(h.rows))
		for i := range some {
			row := make([]cell, len(rows))
			for j, column := range rows {
				if !column.IsNull(i) {
					text := string(lines.AppendText(nil, column, i))
					row[j] = &text
				}
			}
			h.rows = append(h.rows, row)
		}
		return len(h.rows) < n
	})
}
