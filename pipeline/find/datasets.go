package find

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sinks/typed"
)

// Dataset is a dataset, finished or not, or a folder of Parquet files such as that of leadetl changes.
type Dataset struct {
	Folder   string          // in what was listed; empty for that itself
	Manifest *sinks.Manifest // nil without one
	SHA256   string          // of the manifest
	columns  columnsOf
	recorded map[string]sinks.File // of the manifest, by their names there
	in       *sinks.Reader
	files    []string
}

// Datasets lists the datasets at or below a folder or prefix, such as those of all nights. What belongs to none, and
// manifests that cannot be read, are not read.
func Datasets(ctx context.Context, in *sinks.Reader, found Found) ([]*Dataset, error) {
	names, err := in.List(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	all := map[string]*Dataset{}
	for _, name := range names {
		if path.Base(name) == sinks.ManifestName {
			d := &Dataset{Folder: folderOf(name), in: in}
			d.readManifest(found)
			all[d.Folder] = d
		}
	}
	var others []string
	for _, name := range names {
		base := path.Base(name)
		switch {
		case sinks.HasNoRows(base):
		case path.Ext(base) == ".parquet" && !store.IsUnfinished(name):
			d := enclosing(all, folderOf(name))
			d.in = in
			d.files = append(d.files, name)
		default:
			others = append(others, name)
		}
	}
	for _, name := range others {
		why := errors.New("it is no file of a dataset")
		if store.IsUnfinished(name) {
			why = errors.New("a run has not finished it, or was killed: run the same command again")
		}
		found.Unread(in.Path(enclosingColumns(all, name).shown(name)), why)
	}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *Dataset) int { return strings.Compare(a.Folder, b.Folder) })
	for _, d := range sorted {
		for _, name := range d.files {
			progress.Of(ctx).Expect(d.recorded[d.below(name)].Rows)
		}
	}
	return sorted, nil
}

// below is the name of a file in the dataset.
func (d *Dataset) below(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, d.Folder), "/")
}

func folderOf(name string) string { return strings.TrimPrefix(path.Dir(name), ".") }

// enclosing is the dataset with a file in a folder: the closest that has a manifest, or a new one without.
func enclosing(all map[string]*Dataset, folder string) *Dataset {
	for at := folder; ; at = folderOf(at) {
		if d := all[at]; d != nil && (d.Manifest != nil || at == folder) {
			return d
		}
		if at == "" {
			break
		}
	}
	if slices.Contains(sinks.HiddenFolders, path.Base(folder)) {
		folder = folderOf(folder)
	}
	if all[folder] == nil {
		all[folder] = &Dataset{Folder: folder}
	}
	return all[folder]
}

func enclosingColumns(all map[string]*Dataset, name string) columnsOf {
	for at := folderOf(name); ; at = folderOf(at) {
		if d := all[at]; d != nil || at == "" {
			if d == nil {
				return columnsOf{}
			}
			return d.columns
		}
	}
}

func (d *Dataset) readManifest(found Found) {
	name := path.Join(d.Folder, sinks.ManifestName)
	data, err := d.in.ReadFile(name)
	if err == nil {
		sum := sha256.Sum256(data)
		d.SHA256 = hex.EncodeToString(sum[:])
		d.Manifest, err = sinks.ParseManifest(data)
	}
	if err != nil {
		d.Manifest = nil
		found.Unread(d.in.Path(name), err)
	}
	d.columns, d.recorded = newColumnsOf(d.Manifest), map[string]sinks.File{}
	if d.Manifest != nil {
		for _, f := range d.Manifest.Files() {
			d.recorded[f.Name] = f
		}
	}
}

// Shown is the folder for users, below what was listed.
func (d *Dataset) Shown() string { return d.columns.shown(d.Folder) }

// Search looks for subjects in all files of the dataset.
func (d *Dataset) Search(ctx context.Context, s *Subjects, found Found) error {
	lookers := s.lookers()
	for _, name := range d.files {
		f := fileSearch{dataset: d, name: name, below: d.below(name), lookers: lookers, found: found}
		err := f.search(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			shown := d.in.Path(d.columns.shown(name))
			found.Unread(shown, errors.New(strings.ReplaceAll(err.Error(), d.in.Path(name), shown)))
		}
	}
	return nil
}

// fileSearch is the search of a file.
type fileSearch struct {
	dataset     *Dataset
	name, below string // the latter in the dataset
	lookers     lookers
	found       Found
	rows        int64 // before those at work
}

// record is what hits of the file have in common.
func (f *fileSearch) record() Hit {
	what := "rows"
	if folder := f.folder(); folder != "" {
		what = folder
	}
	return Hit{What: what, File: f.dataset.columns.shown(f.below)}
}

// folder is the folder of the dataset that is no data, with the file; empty for data.
func (f *fileSearch) folder() string {
	first, _, _ := strings.Cut(f.below, "/")
	if slices.Contains(sinks.HiddenFolders, first) {
		return first
	}
	return ""
}

func (f *fileSearch) search(ctx context.Context) (err error) {
	in := f.dataset.in
	opened, err := in.Open(f.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	file, err := typed.Open(in.Path(f.name), opened, opened.Size)
	if err != nil {
		return err
	}
	rows := int64(0)
	for group := range file.Groups() {
		rows += file.Rows(group)
	}
	progress.Of(ctx).Expect(rows - f.dataset.recorded[f.below].Rows)
	if err := f.inPath(); err != nil {
		return err
	}
	columns := f.columns(file)
	for group := range file.Groups() {
		if err := f.group(ctx, file, group, columns); err != nil {
			return err
		}
	}
	state, err := f.state(opened, rows)
	if err == nil {
		f.found.Read(state)
	}
	return err
}

// state is the file as it was read. The checksum of the manifest is taken if the file is still the one that it
// was of.
func (f *fileSearch) state(opened *sinks.OpenFile, rows int64) (state File, err error) {
	state = File{Name: f.dataset.columns.shown(f.below), Rows: rows, Bytes: opened.Size, ETag: opened.ETag}
	if of := f.dataset.recorded[f.below]; of.SHA256 != "" && of.CheckOpen(opened) == nil {
		state.SHA256 = of.SHA256
		return state, nil
	}
	state.SHA256, err = opened.Sum()
	return state, err
}

// inPath looks at the values of columns that are in the path of the file and not in it.
func (f *fileSearch) inPath() error {
	l := f.lookers[0]
	for _, element := range strings.Split(path.Dir(f.name), "/") {
		column, escaped, is := strings.Cut(element, "=")
		look := f.dataset.columns.of("", column)
		if !is || look == nil {
			continue
		}
		value, err := schema.Unescape(escaped)
		if err != nil {
			return errors.New("a folder in its path has a name that cannot be read")
		}
		l.Note(column, look(l, value))
	}
	tell(f.found, l.Hits(f.record()))
	return nil
}

// looked is a column that is looked at.
type looked struct {
	schema.Column
	look look
}

// The columns that say where a row of a dataset, or a malformed line, comes from.
const sourceColumn = "source"

var rowColumns = []string{"source_row", "line"}

// columns are those of a file that are read.
func (f *fileSearch) columns(file *typed.File) (all []looked) {
	origin := false
	for _, e := range file.Root {
		c := e.Column()
		if look := f.dataset.columns.of(f.folder(), c.Name); look != nil && hasTexts(c) {
			all = append(all, looked{c, look})
		} else if c.Name == sourceColumn || slices.Contains(rowColumns, c.Name) {
			all = append(all, looked{c, nil})
			origin = true
		}
	}
	if origin && !slices.ContainsFunc(all, func(c looked) bool { return c.look != nil }) {
		return nil
	}
	return all
}

// hasTexts reports whether a column has texts, or lists whose values have one first.
func hasTexts(c schema.Column) bool {
	return c.Type == "STRING" || strings.HasPrefix(c.Type, "LIST<")
}

func (f *fileSearch) group(ctx context.Context, file *typed.File, group int, columns []looked) error {
	work := progress.Of(ctx)
	if len(columns) == 0 {
		work.Done(file.Rows(group))
		return nil
	}
	var plain []schema.Column
	for _, c := range columns {
		plain = append(plain, c.Column)
	}
	reader, err := file.Columns(group, plain)
	if err != nil {
		return err
	}
	for reader.Left() > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n := int(min(reader.Left(), typed.BatchRows))
		batch, err := reader.Next(n, nil)
		if err != nil {
			return err
		}
		hits := f.lookers.each(n, func(l *Looker, row int) []Hit { return f.row(l, columns, batch, row) })
		typed.Release(batch)
		f.rows += int64(n)
		work.Done(int64(n))
		tell(f.found, hits)
	}
	return nil
}

// row looks at a row of a batch.
func (f *fileSearch) row(l *Looker, columns []looked, batch []arrow.Array, row int) []Hit {
	for i, c := range columns {
		if c.look == nil || batch[i].IsNull(row) {
			continue
		}
		eachText(batch[i], row, func(text string) { l.Note(c.Name, text != "" && c.look(l, text)) })
	}
	if len(l.named) == 0 {
		return nil
	}
	of := f.record()
	of.Row = f.rows + int64(row) + 1
	for i, c := range columns {
		switch a := batch[i].(type) {
		case *array.String:
			if c.look == nil && !a.IsNull(row) {
				of.Source = strings.Clone(a.Value(row))
			}
		case *array.Int64:
			if !a.IsNull(row) {
				of.SourceRow = a.Value(row)
			}
		}
	}
	return l.Hits(of)
}

// eachText gives use the text of a cell, or the first texts of the values in its list.
func eachText(a arrow.Array, row int, use func(string)) {
	switch a := a.(type) {
	case *array.String:
		use(a.Value(row))
	case *array.List:
		values := a.ListValues()
		if structs, is := values.(*array.Struct); is {
			values = structs.Field(0)
		}
		texts, is := values.(*array.String)
		for from, to := a.ValueOffsets(row); is && from < to; from++ {
			if !texts.IsNull(int(from)) {
				use(texts.Value(int(from)))
			}
		}
	}
}
