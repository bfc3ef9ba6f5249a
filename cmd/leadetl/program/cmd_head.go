package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sources/parquetfile"
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
	flags.StringSliceVar(&f.selected, "select", nil, "`columns` to print, in this order (default: all)")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON Lines, an object for each row")
	f.s3.RegisterReading(flags)
	return c
}

func (f *headFlags) run(ctx context.Context, dataset string, std cli.Streams) error {
	if f.rows < 1 {
		return cli.UsageError(fmt.Errorf("--rows is %d; it must be at least 1", f.rows))
	}
	log, err := cli.NewLogger(std.Err, "text", "warn")
	if err != nil {
		return err
	}
	opened, err := openDataset(ctx, dataset, &f.s3, log)
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
	h, err := newHead(m, f.selected)
	if err != nil {
		return cli.UsageError(fmt.Errorf("%s: %w", dataset, err))
	}
	h.beside = beside
	if err := h.read(ctx, opened, m, f.rows); err != nil {
		return err
	}
	if f.asJSON {
		return h.printJSON(std.Out)
	}
	return h.printTable(std.Out, cmp.Or(cli.Width(std.Out), 100), m)
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
	r, err := parquetfile.Open(folder.Path(name), io.NewSectionReader(opened, 0, opened.Size))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if m.Parts == nil {
		for i, column := range r.Columns() {
			c := schema.Column{Name: column, Nullable: true}
			if r.IsText(i) {
				c.Type = "STRING"
			}
			m.Schema = append(m.Schema, c)
		}
	}
	m.Parts = append(m.Parts, sinks.Part{File: sinks.File{Name: name, Rows: r.Rows()}})
	m.Totals.Rows += r.Rows()
	return nil
}

// head holds the first rows of a dataset.
type head struct {
	columns []schema.Column
	// partitions are the columns that are in the paths of files and not in the
	// files.
	partitions map[string]bool
	rows       [][]cell
	asked      bool // the user selected these columns, in this order
	beside     bool // it is a table such as _changes, not a dataset
}

// cell is a value as text; nil means null.
type cell *string

// newHead finds the requested columns, or all columns if none are requested.
func newHead(m *sinks.Manifest, asked []string) (*head, error) {
	h := &head{columns: slices.Clone(m.Schema), partitions: map[string]bool{}}
	inPaths := []string{m.PartitionBy}
	for _, p := range m.Partitions {
		inPaths = append(inPaths, p.Name)
	}
	for _, name := range inPaths {
		if name != "" {
			h.partitions[name] = true
			h.columns = append(h.columns, schema.Column{Name: name, Type: "STRING"})
		}
	}
	if len(asked) == 0 {
		return h, nil
	}
	var names []string
	for _, c := range h.columns {
		names = append(names, c.Name)
	}
	all := h.columns
	h.columns, h.asked = nil, true
	for _, name := range asked {
		i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
		if i < 0 {
			return nil, fmt.Errorf("there is no column %q%s; the columns are %s", name, suggest.Name(name, names), strings.Join(names, ", "))
		}
		if slices.ContainsFunc(h.columns, all[i].Equal) {
			return nil, fmt.Errorf("column %q is given twice", name)
		}
		h.columns = append(h.columns, all[i])
	}
	return h, nil
}

// read reads the first n rows, in the order of the parts.
func (h *head) read(ctx context.Context, dataset *sinks.Reader, m *sinks.Manifest, n int) error {
	for _, part := range m.Parts {
		for _, file := range part.Data() {
			if len(h.rows) >= n {
				return nil
			}
			if file.Rows == 0 {
				continue
			}
			values, err := partitionValues(m.Partitions, file.Name)
			if err == nil {
				err = h.readFile(ctx, dataset, file, values, n-len(h.rows))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// partitionValues returns the values of the columns in the path of a file.
func partitionValues(of []schema.Partition, file string) (map[string]cell, error) {
	values := map[string]cell{}
	for _, p := range of {
		values[p.Name] = &p.Value
	}
	folders := strings.Split(file, "/")
	for _, folder := range folders[:len(folders)-1] {
		name, escaped, _ := strings.Cut(folder, "=")
		value, err := schema.Unescape(escaped)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if values[name] = &value; value == "" {
			values[name] = nil // warehouses read it as null
		}
	}
	return values, nil
}

// readFile reads up to n rows of a file.
func (h *head) readFile(ctx context.Context, dataset *sinks.Reader, file sinks.File, partitions map[string]cell, n int) (err error) {
	opened, err := dataset.Open(file.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.UsageError(fmt.Errorf("%s: the manifest lists it, but it is not there; check the dataset with leadetl verify", dataset.Path(file.Name)))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	r, err := parquetfile.Open(dataset.Path(file.Name), io.NewSectionReader(opened, 0, opened.Size))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var fields, order []int // of the file, and for each output column its index in fields
	for _, c := range h.columns {
		if h.partitions[c.Name] {
			order = append(order, -1)
			continue
		}
		field := slices.Index(r.Columns(), c.Name)
		if field < 0 {
			return cli.UsageError(fmt.Errorf("%s has no column %s; check the dataset with leadetl verify", dataset.Path(file.Name), c.Name))
		}
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
		order = append(order, slices.Index(fields, field))
	}
	if err := r.Select(ctx, fields); err != nil {
		return err
	}
	for n > 0 {
		b := rows.NewBuilder(len(fields), n)
		end := r.Fill(ctx, b, n)
		if end != nil && end != io.EOF {
			b.Discard()
			return end
		}
		batch := b.Batch(file.Name, slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i < 0 }))
		h.add(batch, partitions)
		n -= batch.Len()
		batch.Release()
		if end != nil {
			break
		}
	}
	return nil
}

// add adds the rows of a batch, whose columns are those that are not in paths.
func (h *head) add(batch *rows.Batch, partitions map[string]cell) {
	for i := range batch.Len() {
		row := make([]cell, len(h.columns))
		stored := batch.Columns
		for j, c := range h.columns {
			if h.partitions[c.Name] {
				row[j] = partitions[c.Name]
				continue
			}
			row[j] = cellOf(stored[0], i)
			stored = stored[1:]
		}
		h.rows = append(h.rows, row)
	}
}

func cellOf(column *array.String, i int) cell {
	if column.IsNull(i) {
		return nil
	}
	value := strings.Clone(column.Value(i))
	return &value
}
