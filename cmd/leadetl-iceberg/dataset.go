package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	_ "github.com/apache/iceberg-go/io/gocloud"
)

// dataset is a finished dataset, as its _manifest.json describes it.
// Source: docs/reference/formats.md.
type dataset struct {
	location string // an absolute path, or with a scheme
	store    iceio.IO
	sum      string // SHA-256 of the manifest, hex

	Format      int      `json:"format"`
	Operation   string   `json:"operation"`
	JobID       string   `json:"job_id"`
	Schema      []column `json:"schema"`
	Partitions  []pair   `json:"partitions"`
	PartitionBy string   `json:"partition_by"`
	Parts       []struct {
		file
		Files []file `json:"files"`
	} `json:"parts"`
}

type column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type file struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}

const manifestFormat = 1

// openDataset reads the manifest of a dataset. The dataset must have its
// _SUCCESS.
func openDataset(ctx context.Context, uri string, properties map[string]string) (*dataset, error) {
	d := &dataset{location: strings.TrimSuffix(uri, "/")}
	if !strings.Contains(uri, "://") {
		path, err := filepath.Abs(uri)
		if err != nil {
			return nil, err
		}
		d.location = path // without a scheme, so that a percent sign in a folder's name stays unchanged
	}
	var err error
	if d.store, err = iceio.LoadFS(ctx, properties, d.location+"/"); err != nil {
		return nil, wrong("%s cannot be opened: %v", uri, err)
	}
	success, err := d.read("_SUCCESS")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, wrong("%s has no _SUCCESS: it is no finished dataset; wait for its run, or run it again", uri)
	} else if err != nil {
		return nil, err
	}
	data, err := d.read("_manifest.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, d); err != nil || d.JobID == "" {
		return nil, wrong("%s has a damaged manifest; run leadetl verify", uri)
	}
	if d.Format > manifestFormat {
		return nil, wrong("%s was written by a newer leadetl; use its leadetl-iceberg", uri)
	}
	hash := sha256.Sum256(data)
	if d.sum = hex.EncodeToString(hash[:]); string(success) != "sha256 "+d.sum+" _manifest.json\n" {
		return nil, wrong("%s has a manifest whose checksum differs from _SUCCESS; run leadetl verify", uri)
	}
	return d, nil
}

func (d *dataset) read(name string) ([]byte, error) {
	f, err := d.store.Open(d.location + "/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// files returns the Parquet files with rows.
func (d *dataset) files() (all []file) {
	for _, p := range d.Parts {
		files := p.Files
		if files == nil {
			files = []file{p.file}
		}
		for _, f := range files {
			if f.Rows > 0 {
				all = append(all, f)
			}
		}
	}
	return all
}

func (d *dataset) rows() (sum int64) {
	for _, f := range d.files() {
		sum += f.Rows
	}
	return sum
}

// partitions returns the columns that are in paths and not in files, with the
// types that leadetl schema gives them.
func (d *dataset) partitions() (fields []iceberg.NestedField) {
	for _, p := range d.Partitions {
		var t iceberg.Type = iceberg.PrimitiveTypes.String
		if _, err := time.Parse(time.DateOnly, p.Value); err == nil {
			t = iceberg.PrimitiveTypes.Date
		}
		fields = append(fields, iceberg.NestedField{Name: p.Name, Type: t})
	}
	if d.PartitionBy != "" {
		fields = append(fields, iceberg.NestedField{Name: d.PartitionBy, Type: iceberg.PrimitiveTypes.String})
	}
	return fields
}

// defaultPartition represents a null value in paths.
const defaultPartition = "__HIVE_DEFAULT_PARTITION__"

// partitionValues returns the partition values of a file, nil for null.
func (d *dataset) partitionValues(f file) (values []any, err error) {
	for _, p := range d.Partitions {
		if day, err := time.Parse(time.DateOnly, p.Value); err == nil {
			values = append(values, iceberg.Date(day.Unix()/(24*60*60)))
		} else {
			values = append(values, p.Value)
		}
	}
	if d.PartitionBy == "" {
		return values, nil
	}
	folder, _, _ := strings.Cut(f.Name, "/")
	_, escaped, found := strings.Cut(folder, "=")
	value, err := url.PathUnescape(escaped)
	switch {
	case !found || err != nil:
		return nil, wrong("%s is in no folder of a partition; run leadetl verify", f.Name)
	case escaped == defaultPartition:
		return append(values, nil), nil
	}
	return append(values, value), nil
}

// schemas returns the schema of the files and the schema of the table. Field
// ids are numbered from 1, each column before its nested fields, as in the
// files. The table also has the partition columns.
func (d *dataset) schemas() (files, table *iceberg.Schema, err error) {
	s := schemaReader{}
	var fields []iceberg.NestedField
	for _, c := range d.Schema {
		s.last++
		f := iceberg.NestedField{ID: s.last, Name: c.Name, Required: !c.Nullable}
		s.rest = c.Type
		if f.Type = s.typeOf(); s.rest != "" || f.Type == nil {
			return nil, nil, wrong("column %s has type %s, which is not known; use the leadetl-iceberg of a newer leadetl", c.Name, c.Type)
		}
		fields = append(fields, f)
	}
	files = iceberg.NewSchema(0, fields...)
	for _, f := range d.partitions() {
		s.last++
		f.ID = s.last
		fields = append(fields, f)
	}
	return files, iceberg.NewSchema(0, fields...), nil
}

// schemaReader parses types as manifests write them: LIST<STRUCT<email
// STRING>>.
type schemaReader struct {
	last int
	rest string
}

var plainTypes = []struct {
	name string
	is   iceberg.Type
}{
	{"TIMESTAMP(MICROS, UTC)", iceberg.PrimitiveTypes.TimestampTz}, {"STRING", iceberg.PrimitiveTypes.String}, {"INT32", iceberg.PrimitiveTypes.Int32},
	{"INT64", iceberg.PrimitiveTypes.Int64}, {"DOUBLE", iceberg.PrimitiveTypes.Float64}, {"BOOLEAN", iceberg.PrimitiveTypes.Bool}, {"DATE", iceberg.PrimitiveTypes.Date},
}

func (s *schemaReader) take(prefix string) (found bool) {
	s.rest, found = strings.CutPrefix(s.rest, prefix)
	return found
}

// typeOf parses a type; nil means invalid.
func (s *schemaReader) typeOf() iceberg.Type {
	for _, p := range plainTypes {
		if s.take(p.name) {
			return p.is
		}
	}
	switch {
	case s.take("LIST<"):
		s.last++
		list := &iceberg.ListType{ElementID: s.last}
		if list.Element = s.typeOf(); list.Element != nil && s.take(">") {
			return list
		}
	case s.take("STRUCT<"):
		return s.structOf()
	}
	return nil
}

func (s *schemaReader) structOf() iceberg.Type {
	var fields []iceberg.NestedField
	for {
		name, rest, found := strings.Cut(s.rest, " ")
		if !found {
			return nil
		}
		s.last++
		f := iceberg.NestedField{ID: s.last, Name: name}
		s.rest = rest
		if f.Type = s.typeOf(); f.Type == nil {
			return nil
		}
		fields = append(fields, f)
		if s.take(">") {
			return &iceberg.StructType{FieldList: fields}
		}
		if !s.take(", ") {
			return nil
		}
	}
}

func (d *dataset) path(f file) string { return fmt.Sprint(d.location, "/", f.Name) }
