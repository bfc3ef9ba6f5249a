package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/rest"
	sqlcatalog "github.com/apache/iceberg-go/catalog/sql"
	"github.com/apache/iceberg-go/table"
	_ "modernc.org/sqlite"
)

// openedCatalog is a catalog, and the function that closes its connection.
type openedCatalog struct {
	catalog.Catalog
	close func() error
}

// openCatalog connects to a catalog.
func openCatalog(ctx context.Context, o options) (*openedCatalog, error) {
	properties := iceberg.Properties{}
	for name, value := range o.properties {
		properties[name] = value
	}
	if o.warehouse != "" {
		properties["warehouse"] = o.warehouse
	}
	if path, ok := strings.CutPrefix(o.catalog, "sqlite:"); ok {
		return openSQLite(ctx, path, properties)
	}
	if u, err := url.Parse(o.catalog); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, wrong("the catalog is https://HOST or sqlite:FILE; credentials are in ICEBERG_TOKEN or ICEBERG_CREDENTIAL")
	}
	properties["type"], properties["uri"] = "rest", o.catalog
	for name, variable := range map[string]string{"token": "ICEBERG_TOKEN", "credential": "ICEBERG_CREDENTIAL"} {
		if secret := os.Getenv(variable); secret != "" {
			properties[name] = secret
		}
	}
	c, err := catalog.Load(ctx, "leadetl", properties)
	if err != nil {
		return nil, fmt.Errorf("the catalog: %w", err)
	}
	return &openedCatalog{c, func() error { return nil }}, nil
}

func openSQLite(ctx context.Context, path string, properties iceberg.Properties) (*openedCatalog, error) {
	path, err := filepath.Abs(strings.TrimPrefix(path, "//"))
	if err != nil {
		return nil, err
	}
	if properties["warehouse"] == "" {
		properties["warehouse"] = (&url.URL{Scheme: "file", Path: filepath.Dir(path)}).String()
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: path, RawQuery: "_pragma=busy_timeout(10000)&_txlock=immediate"}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(wrong("the catalog %s cannot be opened: %v", path, err), db.Close())
	}
	c, err := sqlcatalog.NewCatalog("leadetl", db, sqlcatalog.SQLite, properties)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &openedCatalog{c, db.Close}, nil
}

// The snapshot properties that identify the dataset.
const (
	jobProperty      = "leadetl.job-id"
	manifestProperty = "leadetl.manifest-sha256"
)

// publisher appends a dataset to a table.
type publisher struct {
	catalog catalog.Catalog
	ident   table.Identifier
	dataset *dataset
	loaded  string // location of the table's metadata when it was last loaded
}

// tries is how often publish retries when the table changes between read and
// write.
const tries = 5

// publish appends the dataset, unless the table already contains it. If another
// program has changed the table first, it tries again.
func (p *publisher) publish(ctx context.Context) (snapshot int64, before bool, err error) {
	for range tries {
		if snapshot, before, err = p.try(ctx); err == nil || !p.overtaken(ctx, err) {
			return snapshot, before, err
		}
	}
	return 0, false, fmt.Errorf("%s: %w: other programs write to it: %w; run the same command again", strings.Join(p.ident, "."), table.ErrCommitFailed, err)
}

func (p *publisher) try(ctx context.Context) (snapshot int64, before bool, err error) {
	t, err := p.table(ctx)
	if err != nil {
		return 0, false, err
	}
	if snapshot, before, err = p.published(t); before || err != nil {
		return snapshot, before, err
	}
	snapshot, err = p.append(ctx, t)
	return snapshot, false, err
}

// overtaken reports whether a commit failed because the table has changed since
// it was loaded. Catalogs report this with different errors, so overtaken loads
// the table to compare.
func (p *publisher) overtaken(ctx context.Context, err error) bool {
	var usage *usageError
	if errors.As(err, &usage) || ctx.Err() != nil {
		return false
	}
	if errors.Is(err, table.ErrCommitFailed) || errors.Is(err, catalog.ErrTableAlreadyExists) {
		return true
	}
	now, err := p.catalog.LoadTable(ctx, p.ident)
	return err == nil && p.loaded != "" && now.MetadataLocation() != p.loaded
}

// load reads the table's metadata.
func (p *publisher) load(ctx context.Context) (*table.Table, error) {
	t, err := p.catalog.LoadTable(ctx, p.ident)
	if err == nil {
		p.loaded = t.MetadataLocation()
	}
	return t, err
}

// operationProperty is a property of the tables that this program creates.
const operationProperty = "leadetl.operation"

// table loads the table. It creates the table and its namespace if they are
// missing.
func (p *publisher) table(ctx context.Context) (*table.Table, error) {
	files, schema, err := p.dataset.schemas()
	if err != nil {
		return nil, err
	}
	t, err := p.load(ctx)
	if errors.Is(err, catalog.ErrNoSuchTable) {
		namespace := catalog.NamespaceFromIdent(p.ident)
		if err := p.catalog.CreateNamespace(ctx, namespace, nil); err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
			return nil, err
		}
		if _, err := p.catalog.CreateTable(ctx, p.ident, schema, catalog.WithProperties(iceberg.Properties{operationProperty: p.dataset.Operation})); err != nil {
			return nil, err
		}
		t, err = p.load(ctx)
	}
	if err != nil {
		return nil, err
	}
	if t.CurrentSnapshot() == nil && t.Properties()[operationProperty] == p.dataset.Operation {
		if t, err = p.begin(ctx, t, schema); err != nil {
			return nil, err
		}
	}
	return t, p.check(t, files)
}

// begin gives a new table the field ids of the files, because catalogs renumber
// them, and adds the partitions.
func (p *publisher) begin(ctx context.Context, t *table.Table, schema *iceberg.Schema) (*table.Table, error) {
	if !t.Schema().Equals(schema) {
		_, _, err := p.catalog.CommitTable(ctx, p.ident,
			[]table.Requirement{table.AssertTableUUID(t.Metadata().TableUUID()), table.AssertRefSnapshotID(table.MainBranch, nil)},
			[]table.Update{table.NewAddSchemaUpdate(schema), table.NewSetCurrentSchemaUpdate(-1)})
		if err != nil {
			return nil, err
		}
		if t, err = p.load(ctx); err != nil {
			return nil, err
		}
	}
	spec := t.Spec()
	if !spec.IsUnpartitioned() || len(p.dataset.partitions()) == 0 {
		return t, nil
	}
	tx := t.NewTransaction()
	update := tx.UpdateSpec(true)
	for _, f := range p.dataset.partitions() {
		update = update.AddIdentity(f.Name)
	}
	if err := update.Commit(); err != nil {
		return nil, err
	}
	if _, err := tx.Commit(ctx); err != nil {
		return nil, err
	}
	return p.load(ctx)
}

// check refuses a table that would read the files incorrectly: Iceberg matches
// columns by their ids.
func (p *publisher) check(t *table.Table, files *iceberg.Schema) error {
	name := strings.Join(p.ident, ".")
	have := t.Schema()
	for _, f := range files.Fields() {
		column, found := have.FindFieldByName(f.Name)
		switch {
		case !found:
			return wrong("%s has no column %s; publish to a table of its own", name, f.Name)
		case column.ID != f.ID || !column.Type.Equals(f.Type):
			return wrong("%s has column %s as %d %s, the files have it as %d %s; publish to a table of its own", name, f.Name, column.ID, column.Type, f.ID, f.Type)
		case column.Required && !f.Required:
			return wrong("%s has column %s without nulls, the files have them; publish to a table of its own", name, f.Name)
		}
	}
	var partitions []string
	spec := t.Spec()
	for _, f := range spec.Fields() {
		source, _ := have.FindColumnName(f.SourceID())
		partitions = append(partitions, source)
		if _, identity := f.Transform.(iceberg.IdentityTransform); !identity {
			return wrong("%s is partitioned by %s of %s; publish to a table of its own", name, f.Transform, source)
		}
	}
	var want []string
	for _, f := range p.dataset.partitions() {
		want = append(want, f.Name)
		if column, found := have.FindFieldByName(f.Name); found && !column.Type.Equals(f.Type) {
			return wrong("%s has its partition %s as %s, the dataset as %s; publish to a table of its own", name, f.Name, column.Type, f.Type)
		}
	}
	if !slices.Equal(partitions, want) {
		return wrong("%s is partitioned by %q, the dataset by %q; publish to a table of its own", name, partitions, want)
	}
	for _, column := range have.Fields() {
		if _, found := files.FindFieldByName(column.Name); !found && column.Required {
			return wrong("%s needs column %s, which the files do not have; publish to a table of its own", name, column.Name)
		}
	}
	return nil
}

// published finds the snapshot that contains the dataset.
func (p *publisher) published(t *table.Table) (snapshot int64, found bool, err error) {
	for _, s := range t.Metadata().Snapshots() {
		if s.Summary == nil || s.Summary.Properties[jobProperty] != p.dataset.JobID {
			continue
		}
		if s.Summary.Properties[manifestProperty] == p.dataset.sum {
			return s.SnapshotID, true, nil
		}
		return 0, false, wrong("%s has another dataset of the same job, as snapshot %d: the files of this one have been made again since, or are elsewhere; "+
			"make it in a folder of its own, or remove the old one from the table", strings.Join(p.ident, "."), s.SnapshotID)
	}
	return 0, false, nil
}

// append commits the files in one snapshot.
func (p *publisher) append(ctx context.Context, t *table.Table) (snapshot int64, err error) {
	var files []iceberg.DataFile
	for _, f := range p.dataset.files() {
		data, err := p.dataFile(ctx, t, f)
		if err != nil {
			return 0, err
		}
		files = append(files, data)
	}
	if len(files) == 0 {
		return 0, wrong("the dataset has no rows; there is nothing to publish")
	}
	tx := t.NewTransaction()
	if err := tx.AddDataFiles(ctx, files, iceberg.Properties{jobProperty: p.dataset.JobID, manifestProperty: p.dataset.sum}); err != nil {
		return 0, err
	}
	committed, err := tx.Commit(ctx)
	if err != nil {
		return 0, err
	}
	return committed.CurrentSnapshot().SnapshotID, nil
}

// dataFile describes a file for the table. Counts and sizes come from the
// footer, partition values from the path.
func (p *publisher) dataFile(ctx context.Context, t *table.Table, f file) (iceberg.DataFile, error) {
	path := p.dataset.path(f)
	plain, err := table.FileToDataFile(ctx, p.dataset.store, path, t.Schema(), *iceberg.UnpartitionedSpec, 0, t.Properties())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if plain.Count() != f.Rows {
		return nil, wrong("%s has %d rows, its manifest says %d; run leadetl verify", path, plain.Count(), f.Rows)
	}
	values, err := p.dataset.partitionValues(f)
	if err != nil {
		return nil, err
	}
	spec := t.Spec()
	partition, logical := map[int]any{}, map[int]string{}
	for i, field := range spec.Fields() {
		partition[field.FieldID] = values[i]
		if _, day := values[i].(iceberg.Date); day {
			logical[field.FieldID] = "date"
		}
	}
	b, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, path, iceberg.ParquetFile, partition, logical, nil, plain.Count(), plain.FileSizeBytes())
	if err != nil {
		return nil, err
	}
	return b.ColumnSizes(plain.ColumnSizes()).ValueCounts(plain.ValueCounts()).NullValueCounts(plain.NullValueCounts()).
		LowerBoundValues(plain.LowerBoundValues()).UpperBoundValues(plain.UpperBoundValues()).SplitOffsets(plain.SplitOffsets()).Build(), nil
}
